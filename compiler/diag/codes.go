package diag

import "slices"

// Entry describes a code: what "explain" and the table of rules print.
type Entry struct {
	Code     Code
	Severity Severity
	// Title is a noun phrase, lower case, without a full stop.
	Title string
	// Explanation is one paragraph of full sentences: what the finding means
	// and why the rule exists.
	Explanation string
	// Hint says in one sentence what to do about it.
	Hint string
}

// Table returns every code in ascending order. The slice is the caller's.
func Table() []Entry { return slices.Concat(families()...) }

// families lists the tables of codes in ascending order, one a line.
func families() [][]Entry {
	return [][]Entry{
		inputCodes,
		shapeCodes,
		ruleCodes,
		analysisCodes,
		lintCodes,
		legacyCodes,
		planCodes,
		migrateCodes,
		migrateInputCodes,
		suiteCodes,
		suppressCodes,
		signCodes,
	}
}

// Lookup returns the entry of a code, and false when there is none.
func Lookup(code Code) (Entry, bool) {
	for _, family := range families() {
		for _, e := range family {
			if e.Code == code {
				return e, true
			}
		}
	}
	return Entry{}, false
}
