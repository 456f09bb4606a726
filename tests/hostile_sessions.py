"""Sessions and replies that would run, load, leave or turn the page round, were they not shown as text."""

import json
from pathlib import Path

# Each would say so by a dialog, or by a request for `gone`.
HOSTILE = {
    "script": "<script>alert('script')</script>",
    "image": "<img src=/gone-image onerror=alert('image')>",
    "attribute": "\" onmouseover=alert('attribute') autofocus onfocus=alert('focus') x=\"",
    "closing": "</pre></textarea></title></details><svg onload=alert(1)><iframe src=//gone.example/x>",
    "form": "<form action=//gone.example/x><button name=answer value=preference:second>Done</button>",
    "link": "https://gone.example/link",
    "javascript": "[x](javascript:alert('link')) javascript:alert('address')",
    "style": "<style>body{display:none}</style><link rel=stylesheet href=/gone-style>",
    "base": "<base href=//gone.example/><meta http-equiv=refresh content='0;url=//gone.example/'>",
    "template": "{{ 7*7 }} {% raw %} ${7*7} <%= 7*7 %>",
    "unseen": "turned \u202e round, zero\u200bwidth, bell \x07",
}


def hostile_sessions(file: Path) -> None:
    """One task a kind of text, two agents each: `bittern-7` says it in full and gets 0, `dunlin-3` 1."""
    rows = []
    for name, text in HOSTILE.items():
        for agent, said, reward in (("bittern-7", text, 0.0), ("dunlin-3", "Done.", 1.0)):
            call = {
                "id": "c1",
                "type": "function",
                "function": {"name": "note", "arguments": json.dumps({"text": said})},
            }
            messages = [
                {"role": "user", "content": f"Please. {text}"},
                {"role": "assistant", "content": said, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "name": "note", "content": said},
                {"role": "assistant", "content": f"{said}\nI am {agent}."},
            ]
            rows.append(
                {
                    "task_id": f"task-{name}",
                    "category": text,
                    "agent": agent,
                    "reward": reward,
                    "messages": messages,
                    "task": f"Get it done. {text}",
                    "policy": text,
                }
            )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def hostile_replies(file: Path) -> None:
    """A judged pair a kind of text; the judge's replies hold it, alone and within JSON."""
    rows = [
        {
            "pair_id": f"pair-{name}",
            "label": "A",
            "raw_ab": f"{text} [[A]]",
            "raw_ba": json.dumps({"reason": text, "more": [text, {text: "x" * 4000}]}) + " [[A]]",
        }
        for name, text in HOSTILE.items()
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
