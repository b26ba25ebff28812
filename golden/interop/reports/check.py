"""Runs shunt check on the cases of golden/check and judges its reports."""

import ast
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import junitparser
from lxml import etree

FORMATS = {"json": "out.json", "sarif": "out.sarif", "junit": "junit.xml", "checkstyle": "checkstyle.xml", "gitlab": "gitlab.json", "github": "github.txt"}


def unpack(archive, folder):
    """Writes the inputs of a case and returns their names."""
    names = []
    parts = re.split(r"^-- (\S+) --\n", archive.read_text(), flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2]):
        if name.startswith("want/"):
            continue
        if name == "options.json":
            return []  # such cases need more than files
        data = text.encode()
        if name.endswith(".quoted"):
            name = name.removesuffix(".quoted")
            data = b"".join(ast.literal_eval("b" + line) for line in text.splitlines() if line.isascii())
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        names.append(name)
    return names


class Judge:
    def __init__(self, root, work):
        self.shunt = work / "shunt"
        report = root / "compiler/report"
        self.findings = jsonschema.Draft202012Validator(json.loads((report / "findings.schema.json").read_text()))
        self.sarif = jsonschema.Draft4Validator(json.loads((report / "testdata/sarif/sarif-2.1.0-rtm.5.json").read_text()))
        self.junit = etree.XMLSchema(etree.parse(str(work / "junit-10.xsd")))
        self.count = 0

    def case(self, archive):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            names = unpack(archive, folder)
            if not names:
                return
            options = [f"--format={f}={out}" for f, out in FORMATS.items()]
            run = subprocess.run([self.shunt, "check", "--max-findings=0", *options, "--", *names], cwd=folder)
            plain = subprocess.run([self.shunt, "check", "--", *names], cwd=folder, capture_output=True)
            assert run.returncode == plain.returncode, (run.returncode, plain.returncode)
            self.judge(folder, run.returncode)
            self.count += 1

    def judge(self, folder, status):
        document = json.loads((folder / FORMATS["json"]).read_text())
        self.findings.validate(document)
        assert document["exit_status"] == status
        counted = [f for f in document["findings"] if not f["suppressed"]]

        log = json.loads((folder / FORMATS["sarif"]).read_text())
        self.sarif.validate(log)
        assert len(log["runs"][0]["results"]) == len(document["findings"])
        assert log["runs"][0]["invocations"][0]["exitCode"] == status

        junit = etree.parse(str(folder / FORMATS["junit"]))
        self.junit.assertValid(junit)
        suites = junitparser.JUnitXml.fromfile(str(folder / FORMATS["junit"]))
        failed = sum(s.failures + s.errors for s in suites)
        assert (failed > 0) == (status != 0), (failed, status)

        errors = etree.parse(str(folder / FORMATS["checkstyle"])).findall("file/error")
        assert len(errors) == len(counted)
        assert all(re.fullmatch(r"shunt\.SH\d{4}", e.get("source")) for e in errors)

        issues = json.loads((folder / FORMATS["gitlab"]).read_text())
        assert len({i["fingerprint"] for i in issues}) == len(issues) == len(counted)

        commands = [l for l in (folder / FORMATS["github"]).read_text().splitlines() if l.startswith("::")]
        assert len(commands) == len(counted)


def main():
    root, work = map(pathlib.Path, sys.argv[1:])
    judge = Judge(root, work)
    for archive in sorted((root / "golden/check").glob("*.txtar")):
        try:
            judge.case(archive)
        except Exception as e:
            e.add_note(str(archive))
            raise
    assert judge.count > 100, judge.count
    print(f"reports of {judge.count} cases agree with their schemas and parsers")


main()
