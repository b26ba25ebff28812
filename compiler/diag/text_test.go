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
	// A hostile line takes linear time.
	for _, unit := range []string{"@", "?", ":@", "http://", "/?", "a:", "secret:"} {
		if line := strings.Repeat(unit, 500_000); len(diag.Mask(line)) != len(line) {
			t.Errorf("%q changed its length", unit)
		}
	}
}
