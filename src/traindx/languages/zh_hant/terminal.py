"""Labels and titles on the terminal."""

MESSAGES: dict[str, str] = {
    "where": "位置",
    "what": "現象",
    "numbers": "數值",
    "why": "原因",
    "fix": "修正",
    "excluded": "已排除",
    "seen": "出現於",
    "explains": "連帶解釋",
    "cleared": "已解除",
    "silenced": "已略過",
    "contexts": "情境",
    "not evaluated": "未評估",
    "not measured": "未量測",
    "notes": "注意事項",
    "run": "本次執行",
}
