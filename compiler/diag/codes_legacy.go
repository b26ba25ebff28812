package diag

// Codes of options that older routers had.
const (
	DroppedPolicy Code = "SH0490"
	DroppedField  Code = "SH0491"
)

// legacyCodes are options of older routers that have no successor of the same
// name, SH0490 to SH0499.
var legacyCodes = []Entry{
	{
		Code: DroppedPolicy, Severity: Error, Title: "policy of an older router",
		Explanation: "The policy type existed in an older router and was dropped or renamed on purpose. It is not accepted as an alias, because its successor behaves differently.",
		Hint:        "Use the policy that the message names.",
	},
	{
		Code: DroppedField, Severity: Error, Title: "option of an older router",
		Explanation: "The field is an option of an older router that was dropped, renamed or moved on purpose. It is never accepted and ignored, because a budget that is silently dropped is a budget that does not hold.",
		Hint:        "Use what the message names.",
	},
}
