"""P001 half-underflow, P008 half-overflow, and the probe that feeds them."""

MESSAGES: dict[str, str] = {
    "Gradients are smaller than what float16 can hold, and become zero.": (
        "梯度小於 float16 所能表示的範圍，因而變成零。"
    ),
    "A layer makes numbers that half precision cannot hold: they become infinite.": (
        "一層算出半精度無法表示的數，因而變成無限大。"
    ),
    "nothing is computed in half precision": "沒有任何部分以半精度計算",
    "the shadow in float64 has another loss: it is random": (
        "float64 影子計算的損失不同：損失帶有隨機性"
    ),
    "{number:.0f} elements that `{fqn}` ({kind}) makes are not finite in {dtype}; in float64 they "
    "are, and reach {largest:.3g}": (
        "`{fqn}`（{kind}）算出的元素中有 {number:.0f} 個在 {dtype} 下不是有限值；"
        "在 float64 下則是，且最大達 {largest:.3g}"
    ),
    "The greatest number of float16 is 65504.": "float16 的最大數是 65504。",
    "with torch.autocast(x.device.type, enabled=False): y = {fqn}(x.float())\n"
    "# or torch.autocast(device, dtype=torch.bfloat16)": (
        "with torch.autocast(x.device.type, enabled=False): y = {fqn}(x.float())\n"
        "# 或 torch.autocast(device, dtype=torch.bfloat16)"
    ),
    "what is not finite in float64 either": "在 float64 下也不是有限值的",
    "in float16 the gradients of {few} of {all} parameters are flushed to zero, with a loss scale "
    "of {scale:g}: most at `{fqn}`, {share:.0%} of the entries with {norm:.0%} of the norm": (
        "在 float16 下，{all} 個參數中有 {few} 個的梯度被歸零，損失縮放為 {scale:g}："
        "最嚴重的是 `{fqn}`，{share:.0%} 的元素，佔範數的 {norm:.0%}"
    ),
    "They are smaller than 3e-8, half the least number of float16.": (
        "它們小於 3e-8，即 float16 最小數的一半。"
    ),
    "scaler = torch.amp.GradScaler()\n"
    "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()\n"
    "# or torch.autocast(device, dtype=torch.bfloat16)": (
        "scaler = torch.amp.GradScaler()\n"
        "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()\n"
        "# 或 torch.autocast(device, dtype=torch.bfloat16)"
    ),
    "gradients that are zero in float64, too": "在 float64 下也為零的梯度",
    "Fraction of the entries of a parameter's gradient that are 0 in the training's float16, with "
    "its loss scale, and are not in float64.": (
        "參數梯度的元素中，在訓練所用的 float16（含其損失縮放）下為 0、在 float64 下不為 0 的比例。"
    ),
    "The part of the gradient's norm that those entries have in float64.": (
        "這些元素在 float64 下佔梯度範數的比例。"
    ),
    "Elements of a layer's output that are not finite in the training's precision, and are in "
    "float64.": "一層輸出中，在訓練所用精度下不是有限值、在 float64 下是有限值的元素個數。",
    "How far, of its RMS, a layer's output lies from float64's.": (
        "一層的輸出與 float64 的結果相差多少（以其 RMS 計）。"
    ),
}
