package simulate

import (
	"fmt"
	"strings"

	"shunt/runtime/policy"
)

func affinityText(a *policy.AffinityTrace) string {
	switch a.Key {
	case policy.KeyAbsent:
		return "the request has no key"
	case policy.KeyBound:
		return "the key is bound to " + a.Bound
	case policy.KeyFree:
		return "the key is bound to no candidate"
	case policy.KeyRaced:
		return "another request has just bound the key to " + a.Bound
	case policy.KeyUnavailable:
		return "the affinity store does not answer"
	}
	return string(a.Key)
}

// cacheText writes a pick by cached prefixes. The first observations belong to
// the holders; it returns the others, which are those of the fallback.
func cacheText(b *strings.Builder, c *policy.CacheTrace, seen []policy.Compared) []policy.Compared {
	fmt.Fprintf(b, "          prefix lookup: %s%s\n", c.Lookup, lookupText(c))
	for i := range c.Holders {
		h := &c.Holders[i]
		line := fmt.Sprintf("%s: blocks %d, matched %d, to compute %d, %s",
			h.Engine, h.Blocks, h.Matched, h.Uncached, strings.ReplaceAll(string(h.Fate), "_", " "))
		if (h.Fate == policy.HolderEvaluated || h.Fate == policy.HolderQueued) && len(seen) > 0 && seen[0].Engine == h.Engine {
			line += ", " + observedText(&seen[0])
			seen = seen[1:]
		}
		fmt.Fprintf(b, "            %s\n", line)
	}
	if c.Saturated {
		b.WriteString("          every engine is queued, so the queue limit does not count\n")
	}
	if c.Pinned {
		b.WriteString("          no engine is known to be below the floor, so queued holders count\n")
	}
	if c.Ceiling != nil {
		fmt.Fprintf(b, "          holders compared by %s, to compute up to %d%s\n", c.Source, *c.Ceiling, guardText(c))
	}
	if len(c.Fallback) > 0 {
		fmt.Fprintf(b, "          fallback among %s\n", list(c.Fallback))
	}
	if c.Outcome != "" {
		fmt.Fprintf(b, "          cache outcome: %s\n", c.Outcome)
	}
	return seen
}

func lookupText(c *policy.CacheTrace) (s string) {
	if c.Why != "" {
		s += " (" + strings.ReplaceAll(c.Why, "_", " ") + ")"
	}
	if c.Blocks > 0 {
		s += fmt.Sprintf(", blocks %d", c.Blocks)
	}
	if len(c.Holders) > 0 {
		s += fmt.Sprintf(", holders considered up to %d", c.Bound)
	}
	return s
}

func guardText(c *policy.CacheTrace) string {
	switch {
	case !c.Guarded:
		return ", pressure not weighed"
	case c.Overruled > 0:
		return fmt.Sprintf(", pressure overruled %d of %d", c.Overruled, c.Compared)
	}
	return fmt.Sprintf(", pressure weighed %d", c.Compared)
}
