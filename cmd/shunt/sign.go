package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"shunt/compiler/diag"
	"shunt/compiler/report"
	"shunt/schema/plan"
)

// maxKeyBytes bounds key and signature files; they have about 100 bytes.
const maxKeyBytes = 64 << 10

func keygenCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:      "keygen",
		Usage:     "make a pair of keys to sign plans with",
		UsageText: "shunt keygen [-o NAME]",
		Description: "Writes NAME.key, the private key for shunt compile --sign, which only its owner may read, and NAME.pub,\n" +
			"the public key for --verify-key of shunt verify and shuntd. Existing files are never replaced.\n" +
			"Keys are Ed25519 in PEM (PKCS #8), so that openssl reads them too. Prints the id of the pair.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "shunt-plan", Usage: "`NAME` of the two files, without extension"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return wrongUsage("keygen takes no argument; name the files with --output")
			}
			if c.String("output") == "" {
				return wrongUsage("--output names no file")
			}
			return keygen(c.String("output"), s.out)
		},
	}
}

func keygen(name string, out io.Writer) error {
	key, err := plan.NewSignKey()
	if err != nil {
		return err
	}
	private, err := key.MarshalPEM()
	if err != nil {
		return err
	}
	public, err := key.Public().MarshalPEM()
	if err != nil {
		return err
	}
	if err := newFile(name+".key", private, 0o600); err != nil {
		return err
	}
	if err := newFile(name+".pub", public, 0o644); err != nil {
		return errors.Join(err, os.Remove(name+".key"))
	}
	_, err = fmt.Fprintf(out, "%s  %s.key  %[2]s.pub\n", key.Public().ID(), report.Clean(name))
	return err
}

// newFile writes a file that must not exist yet.
func newFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, cause(err))
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, cause(err)), os.Remove(name))
	}
	return nil
}

// signFlag is the option that signs what is compiled.
func signFlag() cli.Flag {
	return &cli.StringFlag{Name: "sign", Usage: "sign the plan with the private `KEY`, a file or env:NAME, into a file beside it, plan.json.sig"}
}

// fileOf lists the file of a key that is not in the environment or absent.
func fileOf(key string) []string {
	if strings.HasPrefix(key, "env:") {
		return nil
	}
	return named(key)
}

// signKey reads the key of --sign, nil for none.
func signKey(c *cli.Context, s *streams) (*plan.SignKey, error) {
	if !c.IsSet("sign") {
		return nil, nil
	}
	var data []byte
	var err error
	where := c.String("sign")
	if where == "" {
		return nil, wrongUsage("--sign names no file")
	}
	if name, ok := strings.CutPrefix(where, "env:"); ok {
		if data = []byte(os.Getenv(name)); len(data) == 0 {
			return nil, wrongUsage("--sign names the environment variable %s, which is not set", name)
		}
	} else if data, err = readArgument(s, where, maxKeyBytes); err != nil {
		return nil, err
	}
	key, err := plan.ParseSignKey(data)
	if err != nil {
		return nil, fmt.Errorf("--sign %s: %w", where, err)
	}
	return &key, nil
}

// writePlan writes a plan and its signature. In between, the old signature
// does not fit the new plan, so that a reader that verifies refuses it.
func writePlan(name string, data []byte, key *plan.SignKey, warn io.Writer) error {
	sidecar := name + plan.SignatureSuffix
	defer lockFolder(name)()
	if key == nil {
		if err := writeFile(name, data); err != nil {
			return err
		}
		if _, err := os.Stat(sidecar); err == nil {
			fmt.Fprintf(warn, "shunt: %s is the signature of an earlier plan; sign this one with --sign, or remove it\n", report.Clean(sidecar))
		}
		return nil
	}
	signature, err := plan.Sign(*key, data)
	if err != nil {
		return err
	}
	if err := writeFile(name, data); err != nil {
		return err
	}
	return writeFile(sidecar, signature)
}

// verifyFlags are the options that demand a signature.
func verifyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "verify-key", Usage: "demand a signature by the public key in `FILE`; repeat it to accept any of several"},
		&cli.StringFlag{Name: "signature", Usage: "the signature is in `FILE`", DefaultText: "the plan's name and " + plan.SignatureSuffix},
	}
}

// verifySignature returns the id of the key that signed a plan, or what is wrong
// with the signature; neither when none is demanded.
func verifySignature(c *cli.Context, s *streams, name string, data []byte) (signer string, findings diag.List, err error) {
	var keys []plan.VerifyKey
	for _, file := range c.StringSlice("verify-key") {
		if file == "" {
			return "", nil, wrongUsage("--verify-key names no file")
		}
		text, err := readArgument(s, file, maxKeyBytes)
		if err != nil {
			return "", nil, err
		}
		key, err := plan.ParseVerifyKey(text)
		if err != nil {
			return "", nil, fmt.Errorf("--verify-key %s: %w", file, err)
		}
		keys = append(keys, key)
	}
	sidecar := c.String("signature")
	switch {
	case sidecar == "" && c.IsSet("signature"):
		return "", nil, wrongUsage("--signature names no file")
	case len(keys) == 0 && sidecar != "":
		return "", nil, wrongUsage("--signature needs --verify-key")
	case len(keys) == 0:
		return "", nil, nil
	case sidecar == "" && name == "-":
		return "", nil, wrongUsage("a plan from standard input needs --signature")
	case sidecar == "":
		sidecar = name + plan.SignatureSuffix
	}
	signature, err := readArgument(s, sidecar, maxKeyBytes)
	if errors.Is(err, fs.ErrNotExist) {
		f := diag.New(diag.Unsigned, diag.Pos{File: name}, "", fmt.Sprintf("there is no signature %s", sidecar))
		f.Hint = "compile the plan with --sign, and copy both files"
		return "", diag.List{f}, nil
	}
	if err != nil {
		return "", nil, err
	}
	key, err := plan.VerifySignature(keys, data, signature)
	if err != nil {
		return "", diag.List{planFinding(sidecar, err)}, nil
	}
	return key.ID(), nil, nil
}
