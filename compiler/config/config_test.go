package config_test

import (
	"math"
	"testing"

	"shunt/compiler/config"
)

func TestUnits(t *testing.T) {
	d := func(text string, want int64) {
		t.Helper()
		if got := config.Duration(text).MS(); got != want {
			t.Errorf("%s: %d ms, want %d", text, got, want)
		}
	}
	d("250ms", 250)
	d("30s", 30_000)
	d("5m", 300_000)
	d("2h", 7_200_000)
	d("0s", 0)
	d("999999999999999h", math.MaxInt64)
	d("99999999999999999999999s", math.MaxInt64)
	d("5", math.MaxInt64)
	d("-1s", math.MaxInt64)
	s := func(text string, want int64) {
		t.Helper()
		if got := config.Size(text).Bytes(); got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
	s("12B", 12)
	s("32MiB", 32<<20)
	s("1GiB", 1<<30)
	s("1KiB", 1024)
	s("9007199254740992GiB", math.MaxInt64)
}

// A wrong type is left out; everything else is there.
func TestDecodeIsTolerant(t *testing.T) {
	c, err := config.Decode([]byte(`{"version": "1", "models": [{"id": 3, "tokenizer": 7, "buckets": [{"id": "a", "rank": 1.5, "limits": {"max": 9}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m := c.Models[0]
	b := (*m.Buckets)[0]
	if c.Version != 0 || m.ID != "" || m.Tokenizer == nil || b.ID != "a" || *b.Limits.Max != 9 {
		t.Errorf("decoded %+v", c)
	}
	if _, err := config.Decode([]byte("{")); err == nil {
		t.Error("no JSON was accepted")
	}
}

func TestEmptyIsNotAbsent(t *testing.T) {
	c, err := config.Decode([]byte(`{"models": [{"id": "m", "buckets": []}, {"id": "n"}]}`))
	if err != nil || c.Models[0].Buckets == nil || c.Models[1].Buckets != nil {
		t.Errorf("%v: %+v", err, c)
	}
}
