package plan

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// SignatureSuffix is what the name of a plan's signature adds to that of the
// plan.
const SignatureSuffix = ".sig"

// Blocks of the key files, which openssl reads and writes too.
const (
	privateBlock = "PRIVATE KEY" // PKCS #8, RFC 5958
	publicBlock  = "PUBLIC KEY"  // SubjectPublicKeyInfo, RFC 8410
)

// SignKey signs plans. It is a secret: it has no form as text but MarshalPEM.
type SignKey struct{ key ed25519.PrivateKey }

// VerifyKey verifies signatures.
type VerifyKey struct{ key ed25519.PublicKey }

// NewSignKey makes a key from the system's randomness.
func NewSignKey() (SignKey, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return SignKey{}, fmt.Errorf("generate key: %w", err)
	}
	return SignKey{key}, nil
}

// Public is the key that verifies what k signs.
func (k SignKey) Public() VerifyKey { return VerifyKey{k.key.Public().(ed25519.PublicKey)} }

// String hides the key from logs and errors.
func (k SignKey) String() string { return "signing key of " + k.Public().ID() }

// GoString hides the key from %#v.
func (k SignKey) GoString() string { return k.String() }

// MarshalPEM is the key file, which nobody else may read.
func (k SignKey) MarshalPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), nil
}

// MarshalPEM is the key file, which is no secret.
func (k VerifyKey) MarshalPEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der}), nil
}

// ID names the key: the SHA-256 of its DER form, as in "sha256:3f…".
func (k VerifyKey) ID() string {
	der, err := x509.MarshalPKIXPublicKey(k.key)
	if err != nil {
		return "no key"
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ParseSignKey reads a private key file. Errors do not quote it.
func ParseSignKey(data []byte) (SignKey, error) {
	der, err := onlyBlock(data, privateBlock)
	if err != nil {
		return SignKey{}, err
	}
	any, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return SignKey{}, &Error{Code: CodeKey, Message: "the private key cannot be decoded", Hint: keyHint}
	}
	key, ok := any.(ed25519.PrivateKey)
	if !ok {
		return SignKey{}, &Error{Code: CodeKey, Message: fmt.Sprintf("the key is a %T, not an Ed25519 key", any), Hint: keyHint}
	}
	return SignKey{key}, nil
}

// ParseVerifyKey reads a public key file.
func ParseVerifyKey(data []byte) (VerifyKey, error) {
	der, err := onlyBlock(data, publicBlock)
	if err != nil {
		return VerifyKey{}, err
	}
	any, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return VerifyKey{}, &Error{Code: CodeKey, Message: "the public key cannot be decoded", Hint: keyHint}
	}
	key, ok := any.(ed25519.PublicKey)
	if !ok {
		return VerifyKey{}, &Error{Code: CodeKey, Message: fmt.Sprintf("the key is a %T, not an Ed25519 key", any), Hint: keyHint}
	}
	return VerifyKey{key}, nil
}

const keyHint = "shunt keygen makes a pair of keys"

// onlyBlock returns the content of a file that is one PEM block.
func onlyBlock(data []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, &Error{Code: CodeKey, Message: "the key file has no PEM block", Hint: keyHint}
	case block.Type != kind:
		// The type is quoted only when it is one that people mix up.
		found := "another kind of block"
		if block.Type == privateBlock || block.Type == publicBlock {
			found = fmt.Sprintf("a %q block", block.Type)
		}
		return nil, &Error{Code: CodeKey, Message: fmt.Sprintf("the key file has %s, not a %q block", found, kind), Hint: keyHint}
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, &Error{Code: CodeKey, Message: "the key file has more than one PEM block", Hint: "keep one key in one file"}
	}
	return block.Bytes, nil
}

// Sign returns the signature of a plan file, as one line of base64. It covers
// every byte of the file, provenance included.
func Sign(key SignKey, file []byte) ([]byte, error) {
	signature, err := key.key.Sign(nil, file, crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("sign plan: %w", err)
	}
	return append(base64.StdEncoding.AppendEncode(nil, signature), '\n'), nil
}

// VerifySignature returns the first of the keys whose signature of the plan file
// it is. More than one key is for the time in which keys are changed.
func VerifySignature(keys []VerifyKey, file, signature []byte) (VerifyKey, error) {
	if len(keys) == 0 {
		return VerifyKey{}, errors.New("verify signature: no key")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(bytes.TrimSpace(signature)))
	if err != nil || len(raw) != ed25519.SignatureSize {
		return VerifyKey{}, &Error{
			Code: CodeSignatureForm, Message: "the file is no signature, which is one line of 88 base64 characters",
			Hint: "compile the plan again with --sign, and copy plan and signature as they are",
		}
	}
	for _, k := range keys {
		if ed25519.Verify(k.key, file, raw) {
			return k, nil
		}
	}
	return VerifyKey{}, &Error{
		Code: CodeSignature, Message: "the signature is of another plan or by another key",
		Hint: "compile the plan again with --sign; do not deploy this one",
	}
}
