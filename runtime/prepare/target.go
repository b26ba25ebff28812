package prepare

import (
	"errors"
	"math"
	"net/http"
	"strconv"
)

// The headers that carry a request's latency targets.
const (
	TTFTHeader = "X-Sgl-Ttft-Slo-Ms"
	TPSHeader  = "X-Sgl-Tps-Slo"
)

// The errors of latency targets. Their texts are for clients.
var (
	ErrTTFT      = errors.New("TTFT SLO header must be a positive integer")
	ErrTTFTASCII = errors.New("TTFT SLO header must be ASCII")
	ErrTPS       = errors.New("TPS SLO header must be a finite positive number")
	ErrTPSASCII  = errors.New("TPS SLO header must be ASCII")
)

// TTFT reads the target for the time to the first token, in milliseconds; ok is
// false without one.
func TTFT(h http.Header) (ms uint64, ok bool, err error) {
	v := h[TTFTHeader]
	switch {
	case len(v) == 0:
		return 0, false, nil
	case !ascii(v[0]):
		return 0, false, ErrTTFTASCII
	}
	ms, err = strconv.ParseUint(v[0], 10, 64)
	if err != nil || ms == 0 {
		return 0, false, ErrTTFT
	}
	return ms, true, nil
}

// TPS reads the target for the rate of output, in tokens per second.
func TPS(h http.Header) (rate float64, ok bool, err error) {
	v := h[TPSHeader]
	switch {
	case len(v) == 0:
		return 0, false, nil
	case !ascii(v[0]):
		return 0, false, ErrTPSASCII
	}
	rate, err = strconv.ParseFloat(v[0], 64)
	if err != nil || math.IsInf(rate, 0) || math.IsNaN(rate) || rate <= 0 {
		return 0, false, ErrTPS
	}
	return rate, true, nil
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
