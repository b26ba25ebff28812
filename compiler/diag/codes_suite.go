package diag

// Codes of files of tests. The package runtime/simulate/suite has the same ones.
const (
	TestVacuous   Code = "SH0701"
	TestConflict  Code = "SH0702"
	TestUnknown   Code = "SH0703"
	TestWorld     Code = "SH0704"
	TestRequest   Code = "SH0705"
	TestTooMany   Code = "SH0706"
	TestNoSubject Code = "SH0707"
)

// suiteCodes are mistakes in files of tests of routing decisions, SH07xx. A test
// that fails is no finding.
var suiteCodes = []Entry{
	{
		Code: TestVacuous, Severity: Error, Title: "test that expects nothing",
		Explanation: "The test, or the row of its table, names nothing that could be otherwise, so it passes whatever is decided. A test that cannot fail hides that something is not tested.",
		Hint:        "Name the bucket, the engine or the error that is expected, or remove the test.",
	},
	{
		Code: TestConflict, Severity: Error, Title: "test that contradicts itself",
		Explanation: "Two parts of the test exclude each other, such as a picked engine and a failure, or a length that is given twice. Whatever is decided, one of the two would not hold or would be ignored.",
		Hint:        "Keep one of the two.",
	},
	{
		Code: TestUnknown, Severity: Error, Title: "name that the tested plan does not have",
		Explanation: "The test names a model, bucket or engine that the plan does not have, so the expectation could never be met for a reason that has nothing to do with routing.",
		Hint:        "Correct the name.",
	},
	{
		Code: TestWorld, Severity: Error, Title: "world that does not fit the plan",
		Explanation: "The described state names an engine, bucket or model that the plan does not have, describes one twice, or has values that no engine reports.",
		Hint:        "Correct the world.",
	},
	{
		Code: TestRequest, Severity: Error, Title: "request that nobody can send",
		Explanation: "The facts of the request contradict each other or are incomplete, so there is nothing to decide.",
		Hint:        "Give the request a length, or a body.",
	},
	{
		Code: TestTooMany, Severity: Error, Title: "range that needs too many decisions",
		Explanation: "A range of lengths is decided wherever a bucket begins or ends, and as often as the test is repeated. The product of the two is beyond what a test may take.",
		Hint:        "Use smaller ranges or fewer repetitions.",
	},
	{
		Code: TestNoSubject, Severity: Error, Title: "tests of no plan, or of two",
		Explanation: "A file of tests names the plan that it tests, or the configuration that the plan is compiled from, and a world either in place or in a file.",
		Hint:        "Write plan: plan.json or config: routing.yaml, relative to the file.",
	},
}
