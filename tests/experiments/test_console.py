from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from axplore.cli import app


def test_the_command_prints_the_table_and_writes_its_files(tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = ["reproduce", "lock", "--runs", "2", "--workers", "0", "--out", str(out)]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "30,117 ± 2,087" in result.output
    assert sorted(path.name for path in out.iterdir()) == ["lock.csv", "lock.json", "runs.jsonl"]
