package diag_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"shunt/compiler/diag"
)

func TestShorten(t *testing.T) {
	long := strings.Repeat("ä", 500_000)
	for _, in := range []string{`model "` + long + `" has no engine "` + long + `"`, strings.Repeat("ab ", 100_000), long} {
		got := diag.Shorten(in)
		if len(got) > 2100 || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
	}
	got := diag.New(diag.UnknownEngine, diag.Pos{}, "", `model "`+long+`" has no engine "X"`).Message
	if !strings.HasPrefix(got, `model "ä`) || !strings.HasSuffix(got, `ä" has no engine "X"`) {
		t.Errorf("got %s", got)
	}
}

func TestMask(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		if got := diag.Mask(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	for _, same := range []string{
		"", "url: \"http://10.0.0.1:30000\"", "image: a@b", "u: [http://h/, a@b]", "max_kv_tokens: 5", "tokenizer: {path: /x}",
		"is it? yes", "a?b=c", "url: \"env:REDIS_URL\"", "{id: a, url: \"http://h:1\"}", "@", "?", "://", "password:",
	} {
		f(same, same)
	}
	f("u: http://me:pw@h/x", "u: http://*****@h/x")
	f("u: http://token@h", "u: http://*****@h")
	f("u: http://a:b@c:d@h", "u: http://***@***@h")
	f("u: me:pw@h:1", "u: *****@h:1")
	f("{u: \"http://h/?a=b&c\", v: 1}", "{u: \"http://h/?*****\", v: 1}")
	f("u: http://h?a=b", "u: http://h?***")
	f("u: http://h#a?b # c", "u: http://h#*** # c")
	f("password: x", "password: *")
	f("{\"redis_password\":\"a b\", x: 1}", "{\"redis_password\":\"***\", x: 1}")
	f("api-key = abc", "api-key = ***")
	f("{auth_token: abc, b: 1}", "{auth_token: ***, b: 1}")
	f("secret: 'it'", "secret: '**'")
	f("Authorization: Bearer abc", "Authorization: ****** ***")
	f("--x=Bearer abcdefgh", "--x=Bearer ********")
	f("the bearer of it", "the bearer of it")
	f("{'authorization': 'basic abc', x: 1}", "{'authorization': '*********', x: 1}")
	f("u: http://u:p/w@h", "u: http://*****@h")
	f("u: \"http://u:p w{,'@h\", v: 1", "u: \"http://*******'@h\", v: 1")
	f("{api_keys: [a, \"b\"], v: 1}", "{api_keys: ****\"*\"], v: 1}")
	f("{\"key\": \"-----BEGIN PRIVATE KEY-----\\nabc\\n-----END PRIVATE KEY-----\\n\"}",
		"{\"key\": \"-----BEGIN PRIVATE KEY-----*******-----END PRIVATE KEY-----\\n\"}")
	f("  "+strings.Repeat("aB3/", 16), "  "+strings.Repeat("*", 64))
	f("  "+strings.Repeat("a b ", 16), "  "+strings.Repeat("a b ", 16))
	// A hostile line takes linear time.
	for _, unit := range []string{"@", "?", ":@", "http://", "/?", "a:", "secret:"} {
		if line := strings.Repeat(unit, 500_000); len(diag.Mask(line)) != len(line) {
			t.Errorf("%q changed its length", unit)
		}
	}
}

func TestFindingsHoldNoSecrets(t *testing.T) {
	f := func(message, wantMessage, path, wantPath string) {
		t.Helper()
		list := diag.List{diag.New(diag.UnknownField, diag.Pos{}, path, message)}
		list[0].Hint, list[0].Related = list[0].Message, []diag.Related{{Message: list[0].Message}}
		list.Mask()
		if f := list[0]; f.Hint != wantMessage || f.Related[0].Message != wantMessage {
			t.Errorf("got the hint %q and the related place %q, want %q", f.Hint, f.Related[0].Message, wantMessage)
		}
		if got := list[0]; got.Message != wantMessage || got.Path != wantPath {
			t.Errorf("got %q at %q, want %q at %q", got.Message, got.Path, wantMessage, wantPath)
		}
	}
	f(`unknown field "redis://u:pw@h"`, `unknown field "redis://****@h"`, "/a/redis:~1~1u:pw@h/0", "/a/redis:~1~1****@h/0")
	long := "redis://u:" + strings.Repeat("pw", 500) + "@h"
	f(long, "redis://"+strings.Repeat("*", 142+3+23)+"@h", "", "")
	f(`not "Authorization: Bearer abcdefgh"`, `not "Authorization: ****** ********"`, "", "")
	f(`no finding has the code "token:abc"`, `no finding has the code "token:***"`, "", "")
	f(`no model "org:7b@rev"`, `no model "org:7b@rev"`, "/models/org:7b@rev", "/models/org:7b@rev")
}
