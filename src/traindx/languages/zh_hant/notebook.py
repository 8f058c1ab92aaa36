"""The verdict in a notebook, in Traditional Chinese."""

MESSAGES = {
    "No optimizer step was seen that the watch is for, so there is nothing to judge.": (
        "監看期間沒有看到所監看的訓練有任何最佳化器更新，因此無從判斷。"
    ),
    "number": "數值",
    "explains {n} more": "另解釋了 {n} 項",
    "{n} more finding is on the page.": "另有 {n} 項診斷，請看報告頁面。",
    "{n} more findings are on the page.": "另有 {n} 項診斷，請看報告頁面。",
}
