package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"shunt/schema/plan"
)

// PlanSource says where the plan is and who must have signed it. File is
// required.
type PlanSource struct {
	File string
	// Keys are those that may have signed the plan; with none, no signature is
	// demanded.
	Keys []plan.VerifyKey
	// Signature is the file of the signature; empty is that of the plan and
	// plan.SignatureSuffix.
	Signature string
}

// read reads, verifies and loads the plan as it is now. A reload between the
// writing of a plan and that of its signature refuses the plan, and the next
// one accepts it.
func (s PlanSource) read() (*plan.Document, []byte, error) {
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, nil, fmt.Errorf("plan: %w", err)
	}
	if err := s.verify(data); err != nil {
		return nil, nil, fmt.Errorf("plan %s: %w", s.File, err)
	}
	document, err := plan.Load(data)
	if err != nil {
		return nil, nil, fmt.Errorf("plan %s: %w", s.File, err)
	}
	return document, data, nil
}

// verify looks at the signature before anything of the plan is decoded.
func (s PlanSource) verify(data []byte) error {
	if len(s.Keys) == 0 {
		return nil
	}
	name := s.Signature
	if name == "" {
		name = s.File + plan.SignatureSuffix
	}
	signature, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &plan.Error{
			Code: plan.CodeUnsigned, Message: "there is no signature " + name,
			Hint: "compile the plan with --sign, and deploy both files",
		}
	}
	if err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	_, err = plan.VerifySignature(s.Keys, data, signature)
	return err
}
