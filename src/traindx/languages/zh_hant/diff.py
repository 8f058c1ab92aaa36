"""`traindx diff`: what changed between two runs."""

MESSAGES: dict[str, str] = {
    "the loss of {model}": "{model} 的損失",
    "{gone} gone, {new} new, {same} in both runs": (
        "{gone}已消失，{new} 項新出現，{same} 項兩次都有"
    ),
    "before": "之前",
    "after": "之後",
    "gone": "已消失",
    "new": "新出現",
    "in both": "兩次都有",
    "set otherwise": "設定不同",
    "measured otherwise": "量測不同",
    "{name} {before} -> {after}": "{name} {before} → {after}",
    "with the same numbers": "數值相同",
    "end (mean of {n})": "結尾（{n} 步平均）",
    "medians over the later half of the measured steps, up to the end of the shorter run; told "
    "where the middle 80 % of the values do not overlap and the medians differ by a fourth or "
    "more": (
        "取量測步後半段的中位數，到較短的執行結束為止；僅列出中間 80 % 的值互不重疊、"
        "且中位數相差四分之一以上者"
    ),
    "{quantity} at {where}: {before} -> {after}": "{quantity}，位於 {where}：{before} → {after}",
    "none": "無",
    "a run that was not saved": "未儲存的執行",
}
