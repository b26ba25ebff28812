"""Hashes random prompts with the engines' own functions: hashes.py SGLANG VLLM OUT.

VLLM may be "-" to leave it out.
"""

import json
import random
import sys

from engines import VLLM, Key, Node, SGLang, root

random.seed(20260930)
sglang_root, vllm_root, out = sys.argv[1:4]
sglang = SGLang(sglang_root, out)
vllm = VLLM(vllm_root) if vllm_root != "-" else None


def prompt():
    tokens = [random.randrange(200000) for _ in range(random.choice([1, 7, 63, 64, 65, 200, random.randrange(1, 3000)]))]
    return tokens, random.choice([1, 3, 16, 64])


cases = []
for i in range(1000):
    tokens, size = prompt()
    salt = random.choice([None, None, "tenant-a", "mandant-\u00fc\U0001f511"])
    bigram = i % 4 == 3 and len(tokens) > 1
    node = Node(Key(tokens, bigram, salt), root())
    values = sglang.utils.compute_node_event_hash_values(node, size)
    cases.append({"scheme": "sglang", "block_size": size, "tokens": tokens, "salt": salt or "", "bigram": bigram,
                  "hashes": [sglang.utils.hash_str_to_int64(v) for v in values]})
for i in range(1000 if vllm else 0):
    tokens, size = prompt()
    seed = ["", "0", "some text"][i % 3]
    signed = [h - 2**64 if h >= 2**63 else h for h in vllm.chain(tokens, size, seed)]
    cases.append({"scheme": "vllm", "block_size": size, "tokens": tokens, "seed": seed, "hashes": signed})
json.dump(cases, open(out + "/hashes.json", "w"))
print(len(cases), "prompts hashed")
