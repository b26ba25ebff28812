package bucketfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// plainScalar is a text that YAML reads as the string it looks like.
var plainScalar = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

// reservedScalar is what YAML takes for something else than a string.
var reservedScalar = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)

// scalar writes a text as a YAML scalar.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !reservedScalar.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// Template returns a decisions file with an entry for each question, in the order
// of the questions within each section. Its placeholders are refused until they
// are replaced.
func Template(open []Open) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Decisions for shunt migrate. Replace each %s and give the file with --decisions.\nversion: %d\n", placeholder, DecisionsVersion)
	var sections []string
	for _, o := range open {
		if len(o.Answer) > 0 && !slices.Contains(sections, o.Section) {
			sections = append(sections, o.Section)
		}
	}
	for _, section := range sections {
		list := false
		for _, o := range open {
			if o.Section != section || len(o.Answer) == 0 {
				continue
			}
			indent := ""
			if strings.Contains(o.Answer[0], ": ") {
				if indent = "  "; !list {
					fmt.Fprintf(&b, "%s:\n", section)
				}
				list = true
			}
			comment(&b, indent, o.Question)
			for _, c := range o.Choices {
				comment(&b, indent, c)
			}
			for i, line := range o.Answer {
				switch {
				case !list:
					fmt.Fprintf(&b, "%s: %s\n", section, line)
				case i == 0:
					fmt.Fprintf(&b, "  - %s\n", line)
				default:
					fmt.Fprintf(&b, "    %s\n", line)
				}
			}
		}
	}
	return []byte(b.String())
}

// comment writes a text as a comment of one line.
func comment(b *strings.Builder, indent, text string) {
	if text != "" {
		fmt.Fprintf(b, "%s# %s\n", indent, strings.Join(strings.Fields(text), " "))
	}
}

// Text is how the decisions file would answer the question, for reports: YAML on
// one line.
func (o Open) Text() string {
	if len(o.Answer) == 0 {
		return ""
	}
	if !strings.Contains(o.Answer[0], ": ") {
		return o.Section + ": " + o.Answer[0]
	}
	return o.Section + ": [{" + strings.Join(o.Answer, ", ") + "}]"
}
