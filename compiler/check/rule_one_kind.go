package check

import (
	"fmt"

	"shunt/compiler/diag"
)

// ruleOneKind demands exactly one of plain and pd in the groups of a bucket.
func ruleOneKind(r *rules) {
	for _, m := range r.models {
		for i := range m.buckets() {
			b := &m.buckets()[i]
			path := m.bucketAt(i) + "/groups"
			switch {
			case b.Groups.Plain != nil && b.Groups.PD != nil:
				f := r.addKey(diag.OneKind, path+"/pd", fmt.Sprintf("bucket %q has plain and pd groups", b.ID))
				f.Hint = "keep one of the two"
				f.Related = append(f.Related, diag.Related{Pos: r.tree.KeyPos(path + "/plain"), Message: "plain is here"})
			case b.Groups.Plain == nil && b.Groups.PD == nil && r.intact(path) && r.tree.Node(path) != nil:
				r.addKey(diag.OneKind, path, fmt.Sprintf("bucket %q has neither a plain group nor pd groups", b.ID)).
					Hint = "write groups: {plain: {}} for every plain engine of the model"
			}
		}
	}
}
