"""Writes how the reference library cuts and normalizes short strings.

Usage: splits.py > runtime/tokens/bpe/testdata/splits.json; needs tokenizers. The
unit tests compare with that file, so that they need no network.
"""
import json
import random
import sys

from tokenizers import Regex, normalizers, pre_tokenizers

FAMILY = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]
ATOMS = ["a", "B", "zé", "ſ", "'", "'s", "'LL", "'re", " ", "  ", "\t", "\n", "\r\n", "\n \n", "1", "2345678", "½", "٣", "!", "==", "-x", "_", "(", "€", "\u0301", "的", "日本語", "カ", "゛", "\u3097", "한", "👩‍👩", "\x00", "\x1b", "\x85", "\xa0", "\u200b", "\u3000", "\ufeff", "\ufffd", "\ue000", "\U0001F1E9", "\u1089\u1c89", "e\u0323\u0301", "\u0344", "\u1100\u1161\u11a8", "각", "\u0958", "\u0f71\u0f72", "\u0f73", "\u2126", "\u09c7\u09be", "\u0327\u0301\u0301\u0301"]


def split(patterns):
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
    chain = pre_tokenizers.Sequence(steps)
    return lambda s: [w for w, _ in chain.pre_tokenize_str(s)]


def main():
    families = {"qwen": split([FAMILY % ""]), "llama": split([FAMILY % "{1,3}"]), "deepseek": split(DEEPSEEK)}
    nfc = normalizers.NFC().normalize_str
    pick = random.Random(7)
    texts = ATOMS + [a + b for a in ATOMS[:24] for b in ATOMS[:24:3]]
    texts += ["".join(pick.choice(ATOMS) for _ in range(pick.randint(3, 12))) for _ in range(300)]
    cases = [{"text": t, "nfc": nfc(t), **{name: f(t) for name, f in families.items()}} for t in texts]
    sys.stdout.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=True) for c in cases) + "\n]\n")


main()
