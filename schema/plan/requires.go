package plan

import "cmp"

// NeedsLoadReports reports whether the policy reads reported load, to compare
// engines or to check one of its limits.
func (p *Policy) NeedsLoadReports() bool {
	a := &p.Admission
	return p.Type == PowerOfTwo || p.Type == LoadBased ||
		cmp.Or(a.MaxRunningRequests, a.MaxWaitingRequests, a.MaxKVTokens, a.MaxPendingPrefillTokens) != nil
}

// NeedsDispatchTimestamps reports whether the policy corrects reports by the
// requests that were dispatched since.
func (p *Policy) NeedsDispatchTimestamps() bool { return p.Type == LoadBased }

// Require derives what a model needs from its buckets. The number is the index
// of the model in the body.
func Require(model int, buckets []Bucket) Requires {
	var r Requires
	for i := range buckets {
		b := &buckets[i]
		at := BucketPointer(model, i)
		if cmp.Or(b.Min, b.Max, b.MaxContextTokens) != nil {
			r.LengthEstimate = append(r.LengthEstimate, at)
		}
		for _, g := range b.Groups.All() {
			p := at + "/groups/" + g.Member() + "/policy"
			if g.Group.Policy.NeedsLoadReports() {
				r.LoadReports = append(r.LoadReports, p)
			}
			if g.Group.Policy.NeedsDispatchTimestamps() {
				r.DispatchTimestamps = append(r.DispatchTimestamps, p)
			}
		}
	}
	return r
}
