"""Contexts: in which circumstances signs of illness are none."""

MESSAGES: dict[str, str] = {
    "There is no context `{name}`; the nearest is `{nearest}`.": (
        "沒有名為 `{name}` 的情境；最接近的是 `{nearest}`。"
    ),
    "declared for this run": "這次執行所宣告",
    "declared by {source}": "由 {source} 宣告",
    "the learning rate of {optimizer} rose from {first:.3g} to {peak:.3g}": (
        "{optimizer} 的學習率由 {first:.3g} 升到 {peak:.3g}"
    ),
    "{passes:.0f} backward passes per step": "每一步有 {passes:.0f} 次反向傳播",
    "a GradScaler skipped {count} optimizer steps, last at step {step}": (
        "GradScaler 略過了 {count} 次最佳化器更新，最近一次在第 {step} 步"
    ),
    "one loss trains `{judge}` alone, another `{judged}` through `{judge}`": (
        "一個損失只訓練 `{judge}`，另一個則透過 `{judge}` 訓練 `{judged}`"
    ),
    "{count} of its parameters require no gradient": "其中 {count} 個參數不需要梯度",
    "{count} normalization layers are frozen in eval mode": ("{count} 個正規化層以 eval 模式凍結"),
    "its normalization layers had seen {count:.0f} batches": (
        "其正規化層在訓練前已看過 {count:.0f} 個批次"
    ),
    "{share:.0%} of its parameters are frozen": "其參數有 {share:.0%} 被凍結",
    "`{weight}` was exactly 0 at the start": "`{weight}` 一開始恰為 0",
    "`{weight}` is an adapter by its name": "`{weight}` 依名稱是低秩適配器",
    "a trained pair of rank {rank} beside a frozen matrix": (
        "凍結的矩陣旁有一對秩為 {rank} 的可訓練矩陣"
    ),
    "a step looks up at most {looked_up:.0f} of {rows} rows": (
        "每一步最多查詢 {rows} 列中的 {looked_up:.0f} 列"
    ),
}
