"""`score`: settle, bucket and score again."""

from typing import Any

import click

from audit.faces.cli import settings_of, shared_options
from audit.faces.options import chosen_buckets, run_argument, scale_options


@click.command("score")
@run_argument
@scale_options
@shared_options
@click.pass_context
def score_command(ctx: click.Context, /, run: str, **options: Any) -> None:
    """Settle, bucket and score a run's pairs again; calls nothing.

    What is not given stays as the run has it. `--gap-source judge` brings the bucket set `scores` with it.

    \b
    Examples:
      reward-audit score latest --swap-rule both_agree
      reward-audit score latest --gap-source session --buckets '(0,1] (1,3] (3,8] (8,..)'
    """
    buckets = chosen_buckets(options["buckets"], options["near"])
    from audit.doors.db import opened
    from audit.faces.output import print_json, say, shown, tell
    from audit.pipeline.report_words import scale_warnings
    from audit.pipeline.reporting import headline, report
    from audit.pipeline.scoring import score_run

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        scored, changed = score_run(
            engine,
            run,
            swap_rule=options["swap_rule"],
            gap_source=options["gap_source"],
            gap_scope=options["gap_scope"],
            buckets=buckets,
        )
        scale = {
            "run_id": scored.run_id,
            "swap_rule": scored.swap_rule,
            "gap_source": scored.gap_source,
            "gap_scope": scored.gap_scope,
            "bucket_set": scored.bucket_set,
            "changed": changed,
        }
        if settings.as_json:
            print_json(scale)
            return
        tell(", ".join(f"{name} {value}" for name, value in scale.items()))
        found = report(engine, scored.run_id)
        say(shown(headline(found)))
        for warning in scale_warnings(found):
            tell(f"warning: {warning}", err=True, hanging=9)
