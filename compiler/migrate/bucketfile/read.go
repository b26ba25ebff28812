package bucketfile

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"shunt/compiler/diag"
	"shunt/compiler/source"
)

// parse reads a file as data in a syntax.
func parse(ctx context.Context, name string, data []byte, extension string) (*decoder, diag.List) {
	tree, findings := source.Read(ctx, source.Options{}, []source.Input{{Name: name, Reader: bytes.NewReader(data), As: extension}})
	if tree == nil {
		for i := range findings {
			if findings[i].Code == diag.Syntax && extension == ".json" && findings[i].Hint != "" {
				findings[i].Hint = "JSON has no comments; remove it"
			}
			if findings[i].Code == diag.EmptyInput {
				findings[i].Message, findings[i].Hint = "the file is empty", "check that the right file was named"
			}
			if findings[i].Code == diag.WrongType {
				findings[i].Message = "the file is no object"
			}
		}
		return nil, findings
	}
	d := &decoder{tree: tree, out: findings}
	d.collect(tree.Root(), "")
	return d, nil
}

// Read reads a bucket file, which is JSON whatever its name. The file is of use
// only when the list has no errors.
func Read(ctx context.Context, name string, data []byte, o Options) (File, diag.List) {
	d, findings := parse(ctx, name, data, ".json")
	if d == nil {
		return File{Name: name}, findings
	}
	f := File{Name: name, Format: o.Format, Fields: d.fields}
	if f.Format == FormatAuto {
		f.Format = formatOf(d.tree.Root())
	}
	switch f.Format {
	case FormatLegacy:
		d.legacy(&f)
	case FormatReorg:
		d.reorg(&f)
	case FormatNew:
		d.new(&f)
	default:
		d.add(diag.UnknownValue, diag.Pos{File: name}, "", fmt.Sprintf("there is no format %q", f.Format), "use legacy, reorg or new")
	}
	d.out.Sort()
	return f, d.out
}

// formatOf tells the formats apart by the fields that only one of them has. A
// file without any is taken for a legacy one.
func formatOf(root *source.Node) Format {
	count := make(map[Format]int)
	for _, name := range []string{"ttft_slo_policy", "tps_slo_policy"} {
		if root.Lookup(name) != nil {
			count[FormatLegacy]++
		}
	}
	for _, name := range []string{"session", "kv_indexer"} {
		if root.Lookup(name) != nil {
			count[FormatReorg]++
		}
	}
	if buckets := root.Lookup("buckets"); buckets != nil {
		for _, b := range buckets.Elems {
			for _, format := range []Format{FormatLegacy, FormatReorg, FormatNew} {
				if slices.ContainsFunc(marks(format), func(name string) bool { return b.Lookup(name) != nil }) {
					count[format]++
				}
			}
		}
	}
	best := FormatLegacy
	for _, format := range []Format{FormatReorg, FormatNew} {
		if count[format] > count[best] {
			best = format
		}
	}
	return best
}

// marks are the fields of a bucket by which its format is recognised.
func marks(f Format) []string {
	switch f {
	case FormatLegacy:
		return []string{"stage", "worker_ids", "max_extend_tokens", "max_sequence_tokens"}
	case FormatReorg:
		return []string{"groups"}
	}
	return []string{"plain", "prefill", "decode"}
}

func sloWords() []string { return []string{"disabled", "best_effort", "slo_first"} }
