package app

import (
	"io"
	"log/slog"

	"shunt/schema/plan"
)

func newLog(w io.Writer, l plan.Log, lv *slog.LevelVar) *slog.Logger {
	lv.Set(level(l))
	opts := &slog.HandlerOptions{Level: lv}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

func level(l plan.Log) slog.Level {
	switch l.Level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}
