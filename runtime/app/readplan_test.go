package app_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"shunt/runtime/app"
	"shunt/schema/plan"
)

// TestOnlySignedPlansAreServed starts with a signed plan and reloads to unsigned
// and signed ones.
func TestOnlySignedPlansAreServed(t *testing.T) {
	key, err := plan.NewSignKey()
	if err != nil {
		t.Fatal(err)
	}
	old, err := plan.NewSignKey()
	if err != nil {
		t.Fatal(err)
	}
	engine := startEngine(t, "a")
	file := writePlan(t, "", engine.URL(), nil)
	source := app.PlanSource{File: file, Keys: []plan.VerifyKey{old.Public(), key.Public()}}

	refused := func(want string) {
		t.Helper()
		err := app.Run(context.Background(), app.Options{Plan: source, Log: new(bytes.Buffer), Signals: make(chan os.Signal)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("started, or stopped with %v, want %s", err, want)
		}
	}
	refused("SH0902")
	if err := os.WriteFile(file+".sig", []byte("no signature\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("SH0903")
	signFile(t, key, file)
	p := start(t, app.Options{Plan: source})
	first := p.digest(t)

	writePlan(t, file, engine.URL(), func(s *plan.Server) { s.DrainTimeoutMS = 1000 })
	if got := p.post(t, p.admin+"/admin/reload", ""); got == http.StatusOK {
		t.Errorf("a plan with the signature of another was taken: %d", got)
	}
	if got := p.digest(t); got != first {
		t.Errorf("digest %s in force, want %s", got, first)
	}
	signFile(t, old, file)
	if got := p.post(t, p.admin+"/admin/reload", ""); got != http.StatusOK {
		t.Errorf("a plan signed by the other key: %d", got)
	}
	if got := p.digest(t); got == first {
		t.Error("the signed plan is not in force")
	}
	p.stop(t, syscall.SIGINT, nil)
}

func signFile(t *testing.T, key plan.SignKey, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := plan.Sign(key, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+plan.SignatureSuffix, signature, 0o600); err != nil {
		t.Fatal(err)
	}
}
