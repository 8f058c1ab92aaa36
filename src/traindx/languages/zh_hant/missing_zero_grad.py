"""G006 missing-zero-grad."""

MESSAGES: dict[str, str] = {
    "the optimizer": "最佳化器",
    "in {share:.0%} of the last {steps} measured steps of {name} the gradient was added onto "
    "that of the step before (threshold {threshold:.0%})": (
        "{name} 最近 {steps} 個量測步中，有 {share:.0%} 的步把梯度累加在前一步的梯度上"
        "（門檻 {threshold:.0%}）"
    ),
    "Nothing clears the gradients between two steps, or not between all of them.": (
        "兩步之間沒有清除梯度，或並非每次都清除。"
    ),
    "Call `optimizer.zero_grad()` before `loss.backward()`, once per step.": (
        "每一步在 `loss.backward()` 之前呼叫一次 `optimizer.zero_grad()`。"
    ),
    "gradient accumulation": "梯度累積",
    "one odd step": "單獨一步的異常",
}
