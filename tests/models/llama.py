"""A llama.cpp server on loopback, as people run one beside `ANTHROPIC_BASE_URL`, for the tests that want the real one.

    python -m tests.models.llama [MODEL.gguf]

prints its address, and ends with its input. Needs the dependency group `llama`. Without a model it writes one, which
gives the same answer to everything: its only layer does nothing, and each token of the answer leads to the next. So all
is llama.cpp's own but the wits: reading a model, the chat template, tokens, sampling, the Messages API.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path

SAYS = "Pear."
"""What the model that is written here answers; no letter comes twice."""
CONTEXT = 4096
_CONTROL = ("<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>")
_TEMPLATE = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}<|assistant|>"
_HEADS, _FEED = 12, 32
_WIDTH = 32 * _HEADS


def write_model(path: Path) -> None:
    """Write the model, of 4 MB."""
    import gguf
    import numpy as np

    kinds = {"<unk>": gguf.TokenType.UNKNOWN, **dict.fromkeys(_CONTROL, gguf.TokenType.CONTROL)}
    kinds |= {f"<0x{byte:02X}>": gguf.TokenType.BYTE for byte in range(256)}
    kinds |= dict.fromkeys(map(chr, range(33, 127)), gguf.TokenType.NORMAL)
    number = {token: place for place, token in enumerate(kinds)}
    # A token is one place of the stream, untouched by the layer, and the answer's row there says what comes next.
    embedding = np.eye(len(kinds), _WIDTH, dtype=np.float32)
    output = np.zeros((len(kinds), _WIDTH), np.float32)
    answer = ["<|assistant|>", *SAYS, "</s>"]
    for token, following in pairwise(answer):
        output[number[following], number[token]] = 5

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_FEED)
    writer.add_head_count(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(list(kinds))
    writer.add_token_scores([0.0] * len(kinds))
    writer.add_token_types(list(kinds.values()))
    writer.add_unk_token_id(number["<unk>"])
    writer.add_bos_token_id(number["<s>"])
    writer.add_eos_token_id(number["</s>"])
    writer.add_chat_template(_TEMPLATE)
    nothing = {"ffn_gate": (_FEED, _WIDTH), "ffn_up": (_FEED, _WIDTH), "ffn_down": (_WIDTH, _FEED)}
    nothing |= dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (_WIDTH, _WIDTH))
    tensors = {"token_embd": embedding, "output": output}
    tensors |= dict.fromkeys(("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"), np.ones(_WIDTH, np.float32))
    tensors |= {f"blk.0.{name}": np.zeros(shape, np.float32) for name, shape in nothing.items()}
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(model: Path) -> None:
    """Serve a model until the input ends."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.n_ctx = CONTEXT
    settings.port = 0
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if given := sys.argv[1:]:
        serve(Path(given[0]))
    else:
        with tempfile.TemporaryDirectory(prefix="llm-do-llama-") as folder:
            write_model(Path(folder) / "tiny.gguf")
            serve(Path(folder) / "tiny.gguf")
