package enginetest

import (
	"encoding/binary"
	"math"
)

// The smallest encoding of each value, as the engines' own writer chooses it.

func packArray(dst []byte, n int) []byte {
	return packLength(dst, n, 0x90, 16, 0xdc)
}

func packMap(dst []byte, n int) []byte {
	return packLength(dst, n, 0x80, 16, 0xde)
}

// packLength writes a length: with the tag itself below a limit, otherwise in two
// or four bytes behind the given tags.
func packLength(dst []byte, n int, fix byte, limit int, wide byte) []byte {
	switch {
	case n < limit:
		return append(dst, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, wide), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, wide+1), uint32(n))
}

func packString(dst []byte, s string) []byte {
	if len(s) >= 32 && len(s) <= math.MaxUint8 {
		dst = append(dst, 0xd9, byte(len(s)))
	} else {
		dst = packLength(dst, len(s), 0xa0, 32, 0xda)
	}
	return append(dst, s...)
}

func packUint(dst []byte, n uint64) []byte {
	switch {
	case n < 128:
		return append(dst, byte(n))
	case n <= math.MaxUint8:
		return append(dst, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), n)
}

func packInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0:
		return packUint(dst, uint64(n))
	case n >= -32:
		return append(dst, byte(n))
	case n >= math.MinInt8:
		return append(dst, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(n))
}

func packNil(dst []byte) []byte { return append(dst, 0xc0) }

func packFloat(dst []byte, x float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(x))
}
