package diag

// Codes of keys and signatures. The loader in schema/plan has the same ones.
const (
	BadKey         Code = "SH0901"
	Unsigned       Code = "SH0902"
	BadSignature   Code = "SH0903"
	WrongSignature Code = "SH0904"
)

// signCodes are what signing and verifying say, SH09xx.
var signCodes = []Entry{
	{
		Code: BadKey, Severity: Error, Title: "key file that is none",
		Explanation: "Plans are signed with Ed25519. A private key is one PKCS #8 block and a public key one SubjectPublicKeyInfo block, both in PEM. Another algorithm, several keys in a file, or a private key where a public one belongs is refused.",
		Hint:        "Make a pair of keys with shunt keygen, sign with the private one and verify with the public one.",
	},
	{
		Code: Unsigned, Severity: Error, Title: "plan without a signature",
		Explanation: "A signature is demanded, and beside the plan there is none. The signature of plan.json is the file plan.json.sig.",
		Hint:        "Compile the plan with --sign, and deploy both files.",
	},
	{
		Code: BadSignature, Severity: Error, Title: "signature file that is none",
		Explanation: "A signature is the 64 bytes of an Ed25519 signature as one line of base64. The file has something else.",
		Hint:        "Compile the plan again with --sign, and copy plan and signature as they are.",
	},
	{
		Code: WrongSignature, Severity: Error, Title: "signature of another plan or by another key",
		Explanation: "The signature does not fit the bytes of the plan and any of the given keys: the plan was changed or replaced after it was signed, the signature of an earlier plan was left beside it, or somebody else signed it.",
		Hint:        "Compile the plan again with --sign where the private key is; do not deploy this one.",
	},
}
