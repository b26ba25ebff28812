package plan_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"shunt/schema/plan"
)

func newKey(t *testing.T) plan.SignKey {
	t.Helper()
	key, err := plan.NewSignKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, key plan.SignKey, data string) []byte {
	t.Helper()
	s, err := plan.Sign(key, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSign(t *testing.T) {
	one, two := newKey(t), newKey(t)
	keys := []plan.VerifyKey{two.Public(), one.Public()}
	signature := sign(t, one, "a plan\n")
	by, err := plan.VerifySignature(keys, []byte("a plan\n"), signature)
	if err != nil || by.ID() != one.Public().ID() {
		t.Fatalf("signed by %s, %v, want %s", by.ID(), err, one.Public().ID())
	}
	f := func(keys []plan.VerifyKey, data string, signature []byte, code string) {
		t.Helper()
		_, err := plan.VerifySignature(keys, []byte(data), signature)
		if err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%q: got %v, want %s", data, err, code)
		}
	}
	f(keys, "a plan", signature, "SH0904")                              // a byte is missing
	f(keys[:1], "a plan\n", signature, "SH0904")                        // another key
	f(keys, "a plan\n", nil, "SH0903")                                  // an empty file
	f(keys, "a plan\n", signature[1:], "SH0903")                        // a character is missing
	f(keys, "a plan\n", append(signature, 'A'), "SH0903")               // something follows
	f(keys, "a plan\n", []byte(strings.Repeat("A", 86)+"=="), "SH0904") // zeros
	f(nil, "a plan\n", signature, "no key")
}

func TestParseKeys(t *testing.T) {
	key := newKey(t)
	private, err := key.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public().MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.ParseSignKey(private)
	if err != nil || again.Public().ID() != key.Public().ID() {
		t.Fatalf("private key: %v", err)
	}
	other, err := plan.ParseVerifyKey(append([]byte("comment\n"), public...))
	if err != nil || other.ID() != key.Public().ID() {
		t.Fatalf("public key: %v", err)
	}
	bad := func(data []byte, want string) {
		t.Helper()
		_, err := plan.ParseVerifyKey(data)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "SH0901") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	bad(nil, "no PEM block")
	bad(private, `a "PRIVATE KEY" block, not a "PUBLIC KEY" block`)
	bad(append(public, public...), "more than one")
	bad([]byte(strings.Replace(string(public), "M", "A", 1)), "cannot be decoded")
	// A public EC key.
	bad([]byte("-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n"), "not an Ed25519 key")
	if _, err := plan.ParseSignKey(public); err == nil {
		t.Error("a public key was read as a private one")
	}
}

// TestSignKeyIsSecret prints a key in all ways and looks for it.
func TestSignKeyIsSecret(t *testing.T) {
	key := newKey(t)
	data, err := key.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(string(data), "\n")[1]
	raw, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	seed := raw[len(raw)-32:]
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		text := fmt.Sprintf(format, key)
		if strings.Contains(text, secret[20:]) || strings.Contains(text, fmt.Sprint(seed)) || !strings.Contains(text, "signing key of") {
			t.Errorf("%s prints %s", format, text)
		}
	}
	half := append([]byte(nil), data[:len(data)/2]...)
	if _, err := plan.ParseSignKey(bytes.Replace(data, []byte("MC4"), []byte("MC5"), 1)); err == nil || strings.Contains(err.Error(), secret[20:]) {
		t.Errorf("an error quotes the key: %v", err)
	}
	if _, err := plan.ParseSignKey(half); err == nil || strings.Contains(err.Error(), secret[20:]) {
		t.Errorf("an error quotes the key: %v", err)
	}
}

// TestOpenSSL verifies our signature and key files with openssl, and its with us.
func TestOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("needs openssl")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		c := exec.Command(openssl, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	write := func(name string, data []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	key := newKey(t)
	public, err := key.Public().MarshalPEM()
	write("ours.pub", public, err)
	write("plan.json", []byte("a plan\n"), nil)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(sign(t, key, "a plan\n"))))
	write("ours.bin", raw, err)
	run("pkeyutl", "-verify", "-pubin", "-inkey", "ours.pub", "-rawin", "-in", "plan.json", "-sigfile", "ours.bin")

	run("genpkey", "-algorithm", "ed25519", "-out", "theirs.key")
	run("pkey", "-in", "theirs.key", "-pubout", "-out", "theirs.pub")
	theirs, err := plan.ParseSignKey(read("theirs.key"))
	if err != nil {
		t.Fatal(err)
	}
	verify, err := plan.ParseVerifyKey(read("theirs.pub"))
	if err != nil || verify.ID() != theirs.Public().ID() {
		t.Fatalf("key pair of openssl: %v", err)
	}
	run("pkeyutl", "-sign", "-inkey", "theirs.key", "-rawin", "-in", "plan.json", "-out", "theirs.bin")
	signature := []byte(base64.StdEncoding.EncodeToString(read("theirs.bin")))
	if _, err := plan.VerifySignature([]plan.VerifyKey{verify}, []byte("a plan\n"), signature); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseVerifyKey(f *testing.F) {
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := plan.ParseVerifyKey(data)
		if err != nil {
			return
		}
		text, err := k.MarshalPEM()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := plan.ParseVerifyKey(text); err != nil || again.ID() != k.ID() {
			t.Fatalf("%v", err)
		}
	})
}
