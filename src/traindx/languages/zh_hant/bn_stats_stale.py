"""N002 bn-stats-stale."""

MESSAGES: dict[str, str] = {
    "after {updates:.0f} updates the initial running statistics still weigh {weight:.0%} "
    "(threshold {most_weight:.0%}) in {stale} of {norms} normalization layers, and in eval mode "
    "`{worst}` is off by {gap:.2f} standard deviations, with a noise of {noise:.2f} (threshold "
    "{most_gap:g} beyond it)": (
        "經過 {updates:.0f} 次更新後，{norms} 個正規化層中有 {stale} 個的初始 running 統計量仍佔 "
        "{weight:.0%}（門檻 {most_weight:.0%}）；在 eval 模式下 `{worst}` 偏移 {gap:.2f} 個"
        "標準差，雜訊為 {noise:.2f}（門檻為雜訊之外 {most_gap:g}）"
    ),
    "`momentum={momentum}` is too small for {updates:.0f} updates.": (
        "對 {updates:.0f} 次更新而言，`momentum={momentum}` 太小。"
    ),
    "# Before training; leaves under 1 % of the start after {updates:.0f} updates:\n"
    "for m in {model}.modules():\n"
    '    if hasattr(m, "running_mean"):\n'
    "        m.momentum = {momentum}": (
        "# 訓練之前；{updates:.0f} 次更新後，初始值所佔不到 1 %：\n"
        "for m in {model}.modules():\n"
        '    if hasattr(m, "running_mean"):\n'
        "        m.momentum = {momentum}"
    ),
    "{fix}\n# Or before evaluating: run {batches} batches through {model}.train() under "
    "torch.no_grad().": (
        "{fix}\n# 或在評估之前：於 torch.no_grad() 下，讓 {batches} 個批次通過 {model}.train()。"
    ),
    "an evaluation before training": "訓練前的評估",
    "standardized inputs": "已標準化的輸入",
}
