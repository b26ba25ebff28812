package argv_test

import (
	"fmt"
	"strings"
	"testing"

	"shunt/compiler/migrate/argv"
)

// TestBounds: inputs that are made to be expensive are refused or read, and
// never take long. What takes long here fails by the time limit of the test.
func TestBounds(t *testing.T) {
	repeat := strings.Repeat
	f := func(name, input, want string) {
		t.Helper()
		t.Helper()
		_, findings := argv.Read(name, []byte(input), argv.Options{})
		if !strings.Contains(findings.String(), want) || want == "" && findings.HasErrors() {
			t.Errorf("%.40q: got %.300v, want %q", input, findings, want)
		}
	}
	router := "\nsgl-router --model-id m\n"
	f("a.sh", repeat("x", argv.MaxBytes+1), "may have")
	f("a.sh", "#"+repeat("x", 200<<10), "shell text may have")
	f("a.sh", repeat("(", 1000), "brackets are open")
	f("a.sh", repeat("if ", 30_000), "shell syntax")
	f("a.sh", "A=xxxxxxxx\n"+repeat("A=$A$A\n", 100)+router, "grow to more than")
	f("a.sh", "A=x\n"+repeat("A+=$A\n", 100)+router, "grow to more than")
	f("a.sh", "A=(x)\n"+repeat("A=(${A[@]} ${A[@]})\n", 100)+router, "grow to more than")
	f("a.sh", "set -- x y\n"+repeat("set -- \"$@\" \"$@\"\n", 100)+router, "grow to more than")
	var vars strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&vars, "a%d=1\n", i)
	}
	f("a.sh", vars.String()+router, "variables")
	f("a.sh", repeat("(:)\n", 20_000)+router, "")
	script := "sgl-router --model-id m"
	for range 12 {
		script = "sh -c '" + strings.ReplaceAll(script, "'", `'"'"'`) + "'"
		if len(script) > 100_000 {
			break
		}
	}
	f("a.sh", script, "nested more than")
	f("a.sh", "sgl-router "+repeat("--a ", 20_000), "arguments, more than")
	f("a.yaml", "kind: Pod\na: "+repeat("[", 5000)+repeat("]", 5000), "no containers")
	f("a.yaml", repeat("---\n{}\n", 20_000), "documents")
	var list strings.Builder
	list.WriteString(`{"kind":"List","items":[`)
	for i := range 20_000 {
		fmt.Fprintf(&list, `{"kind":"Pod","metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","args":["--model-id","m"]}]}},`, i)
	}
	f("a.json", strings.TrimSuffix(list.String(), ",")+"]}", "commands in this input start a router")
	var env strings.Builder
	env.WriteString("kind: Pod\nspec:\n  containers:\n  - name: c\n    args: [--model-id, $(V99)]\n    env:\n    - {name: V0, value: xxxxxxxxxx}\n")
	for i := range 99 {
		fmt.Fprintf(&env, "    - {name: V%d, value: $(V%d)$(V%d)}\n", i+1, i, i)
	}
	f("a.yaml", env.String(), "grow to more than")
	f("a.service", "[Service]\n"+repeat("Environment=A=b\n", 10_000)+"ExecStart=sgl-router --model-id m", "")
	f("a.service", "[Service]\n"+repeat("Environment=A=b\n", 100_000), "a unit may have")
	f("a.yml", "services: {r: {image: sgl-router, command: '"+repeat("${A:-", 5000)+"'}}", "")
	f("a.yml", "services: {r: {image: sgl-router, command: \""+repeat(`\n`, 1<<17)+"\"}}", "")
	f("a.yaml", "kind: Pod\nspec: {containers: [{name: c, image: sgl-router, args: [|\n"+repeat(" \n", 100_000)+"]}]}", "YAML")
	f("a.yaml", "kind: Pod\nspec:\n  containers:\n  - name: c\n    image: sgl-router\n    args:\n    - |\n"+repeat("      x\n", 100_000), "")
}

// TestHiddenText: what is no text is refused with the place of the first bad
// byte.
func TestHiddenText(t *testing.T) {
	f := func(input, want string) {
		t.Helper()
		t.Helper()
		if _, findings := argv.Read("a.sh", []byte(input), argv.Options{}); !strings.HasPrefix(findings.String(), want) {
			t.Errorf("%q: got %v, want %q", input, findings, want)
		}
	}
	f("a\nb\x00c", "a.sh:2:2: error: the input has a byte 0")
	f("a\n\xff", "a.sh:2:1: error: the byte 0xff is not UTF-8")
	f("\xef\xbb\xbfecho", "a.sh: error: no command")
}

// TestSecrets: no value of a variable that may be a secret leaves the package.
func TestSecrets(t *testing.T) {
	for name, input := range map[string]string{
		"a.sh":      "export HF_TOKEN=s3cret\nAPI_KEY=s3cret OTHER=s3cret sgl-router --model-id m\n",
		"a.yaml":    "kind: Pod\nspec: {containers: [{name: r, args: [--model-id, $(HF_TOKEN)], env: [{name: HF_TOKEN, value: s3cret}, {name: OTHER, value: s3cret}, {name: RUST_LOG, value: 'http://u:s3cret@h'}]}]}",
		"a.yml":     "services: {r: {command: sgl-router --model-id m, environment: {HF_TOKEN: s3cret, OTHER: s3cret}}}",
		"a.service": "[Service]\nEnvironment=HF_TOKEN=s3cret OTHER=s3cret\nExecStart=sgl-router --model-id ${HF_TOKEN}\n",
	} {
		inv, findings := argv.Read(name, []byte(input), argv.Options{})
		if len(inv.Args) != 2 || findings.HasErrors() {
			t.Fatalf("%s: got %v, %v", name, inv, findings)
		}
		if text := fmt.Sprint(inv.Args, inv.Env, findings); strings.Contains(text, "s3cret") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
