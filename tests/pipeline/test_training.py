"""Exported sets as trainers take them: loaded by `datasets`, and one real step of TRL's DPOTrainer.

Both libraries are in the extra `train`, which is large: without it these tests are skipped.
"""

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.doors.db import open_database
from audit.pipeline.exporting_dpo import Wish, export_dpo
from audit.pipeline.importing import Wish as Import
from audit.pipeline.importing import import_file

WHY = "needs the extra `train`: pip install 'reward-audit[train]'"
# Other people's libraries warn of themselves.
pytestmark = pytest.mark.filterwarnings("default")
TEMPLATE = (
    "{% if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>{% endif %}"
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}"
    "{% for call in message.tool_calls or [] %}{{ call.function.name }}"
    "{% for name, value in call.function.arguments.items() %} {{ name }}={{ value | tojson }}{% endfor %}"
    "{% endfor %}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


def pair(number: int, good: Any, bad: Any, prompt: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "pair_id": f"p{number:06d}", "reward_a": 1, "reward_b": 0, "pref_ab": "A", "pref_ba": "A",
        "prompt": prompt or f"Question {number}?", "response_a": good, "response_b": bad, **more,
    }  # fmt: skip


def with_call(arguments: Any) -> list[dict[str, Any]]:
    function = {"name": "refund", "arguments": arguments}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "x", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "17"},
        {"role": "assistant", "content": "Done."},
    ]


def exported(folder: Path, pairs: list[dict[str, Any]], name: str = "set.jsonl", **wish: Any) -> list[Any]:
    """The rows that an export of these pairs writes, as lines."""
    file = folder / "judged.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in pairs), encoding="utf-8")
    engine = open_database(f"sqlite:///{folder}/audit.db", create=True)
    try:
        import_file(engine, Import("jsonl", (file,)))
        export_dpo(engine, Wish(folder / "set.jsonl", **wish))
        if name != "set.jsonl":
            export_dpo(engine, Wish(folder / name, **wish))
    finally:
        engine.dispose()
    return read(folder / "set.jsonl")


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def loaded(path: Path) -> list[Any]:
    datasets = pytest.importorskip("datasets", reason=WHY)
    datasets.disable_progress_bars()
    kind = "parquet" if path.suffix == ".parquet" else "json"
    rows = datasets.load_dataset(
        kind, data_files=str(path), split="train", cache_dir=str(path.parent / "cache")
    )
    return list(rows)


PLAIN = [pair(number, "yes " * 600, "no " * 600) for number in range(3000)]  # over ten megabytes
CALLS: dict[str, list[dict[str, Any]]] = {
    "no call at all": [pair(0, "a", "b"), pair(1, "a", "b")],
    "calls in every row": [
        pair(0, with_call('{"order": 17}'), "b"),
        pair(1, with_call({"order": "17"}), "b"),
    ],
    "the first call after thousands of rows": [
        *PLAIN,
        pair(3000, with_call({"order": 17}), "b"),
        pair(3001, "a", with_call({"order": "17", "note": None})),
        pair(3002, with_call({"other": [1, {"a": 0.5}]}), "b"),
    ],
    "a call in a prompt after thousands of rows": [
        *PLAIN,
        pair(
            3000,
            "a",
            "b",
            [{"role": "user", "content": "Hi"}, *with_call({}), {"role": "user", "content": "?"}],
        ),
    ],
    "the first calls, then thousands of rows": [pair(0, with_call({"order": 1}), "b"), *PLAIN[1:]],
    "the first known gap after thousands of rows": [
        *(one | {"reward_a": None} for one in PLAIN),
        pair(3000, "a", "b"),
    ],
}


@pytest.mark.parametrize("pairs", CALLS.values(), ids=CALLS.keys())
def test_set_when_loaded_by_datasets_then_every_row_is_as_it_was_written(
    tmp_path: Path, pairs: list[dict[str, Any]]
) -> None:
    pytest.importorskip("datasets", reason=WHY)
    rows = exported(tmp_path, pairs, "set.parquet", keep=("unverified",))

    assert len(rows) == len(pairs)
    assert loaded(tmp_path / "set.jsonl") == rows
    by_id = sorted(rows, key=lambda row: row["pair_id"])
    assert sorted(loaded(tmp_path / "set.parquet"), key=lambda row: row["pair_id"]) == by_id


def test_card_when_a_folder_is_loaded_then_its_splits_are_the_parts(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason=WHY)
    (tmp_path / "hub").mkdir()
    pairs = [pair(number, "a", "b") for number in range(60)]
    file = tmp_path / "judged.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in pairs), encoding="utf-8")
    engine = open_database(f"sqlite:///{tmp_path}/audit.db", create=True)
    try:
        import_file(engine, Import("jsonl", (file,)))
        split = (("train", 0.7), ("test", 0.3))
        export_dpo(engine, Wish(tmp_path / "hub" / "set.jsonl", split=split, card=True))
    finally:
        engine.dispose()
    found = datasets.load_dataset(str(tmp_path / "hub"), cache_dir=str(tmp_path / "cache"))
    assert {name: list(rows) for name, rows in found.items()} == {
        name: read(tmp_path / "hub" / f"set.{name}.jsonl") for name in ("train", "test")
    }


def tokenizer_of(rows: list[Any]) -> Any:
    """Made on the spot, of the bytes of these rows."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<pad>", "<eos>", "<end>", "<user>", "<assistant>", "<tool>", "<system>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator([json.dumps(row) for row in rows], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")  # noqa: S106 - no passwords
    fast.chat_template = TEMPLATE
    return fast


def step(folder: Path, path: Path, smoothing: float) -> float:
    """One step of DPO on the set; the loss. The weights must have moved."""
    import torch
    from datasets import load_dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import DPOConfig, DPOTrainer

    kind = "parquet" if path.suffix == ".parquet" else "json"
    rows = load_dataset(kind, data_files=str(path), split="train", cache_dir=str(folder / "cache"))
    tokenizer = tokenizer_of(list(rows))
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
            num_attention_heads=2, max_position_embeddings=8192, pad_token_id=0, eos_token_id=1,
        )
    )  # fmt: skip
    before = model.model.layers[0].mlp.up_proj.weight.detach().clone()
    config = DPOConfig(
        output_dir=str(folder / "out"), max_steps=1, per_device_train_batch_size=2, learning_rate=0.1,
        loss_type="robust", label_smoothing=smoothing, max_length=None, use_cpu=True, bf16=False,
        report_to=[], save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = DPOTrainer(
        model=model,
        ref_model=copy.deepcopy(model),  # else it is fetched by its name, which this one has not
        args=config,
        train_dataset=rows,
        processing_class=tokenizer,
    )
    done = trainer.train()
    after = trainer.accelerator.unwrap_model(trainer.model).model.layers[0].mlp.up_proj.weight
    assert not torch.equal(before, after.detach())
    return float(done.training_loss)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_trainer_when_given_a_set_without_tools_then_takes_a_step_with_its_smoothing(
    tmp_path: Path, ending: str
) -> None:
    pytest.importorskip("trl", reason=WHY)
    # One verdict in four is wrong, and of half of the pairs nobody knows.
    pairs = [
        pair(number, "Yes, gladly.", "No.", pref_ab="AB"[number % 4 == 0], pref_ba="AB"[number % 4 == 0])
        | ({"reward_a": None} if number % 2 else {})
        for number in range(32)
    ]  # fmt: skip
    exported(tmp_path, pairs, f"set.{ending}", keep=("unverified",))
    manifest = json.loads((tmp_path / f"set.{ending}.manifest.json").read_text())

    smoothing = manifest["trl"]["label_smoothing"]
    assert 0 < smoothing < 0.5
    loss = step(tmp_path, tmp_path / f"set.{ending}", smoothing)
    # Model and reference are the same before the first step: every loss is that of a fair coin.
    assert loss == pytest.approx(math.log(2), abs=1e-3)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_trainer_when_given_a_live_runs_set_with_tools_then_takes_a_step(
    small: Callable[..., Path], here: Callable[..., Any], tmp_path: Path, ending: str
) -> None:
    pytest.importorskip("trl", reason=WHY)
    assert here("run", "-c", small()).code == 0
    path = tmp_path / f"set.{ending}"
    done = here("export", "dpo", "-o", path, "--prefer", "reward", "--keep", "both_failed", "--json")
    found = json.loads(done.stdout)
    assert found["counts"]["exported"] > 1
    loss = step(tmp_path, path, found["trl"]["label_smoothing"])
    assert loss == pytest.approx(math.log(2), abs=1e-3)
