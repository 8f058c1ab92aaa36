"""F005 sigmoid-chain."""

MESSAGES: dict[str, str] = {
    "every way from the loss back to `{param}` passes {sigmoids} sigmoids or more, and at most "
    "10^{bound:.1f} of the loss's gradient arrives there (0.25 per sigmoid times the spectral "
    "norms; threshold 10^{threshold:g}); measured, the gradient RMS is {first:.2g} at this weight "
    "and {last:.2g} at the last layer's": (
        "從損失回到 `{param}` 的每一條路徑都至少經過 {sigmoids} 個 sigmoid，"
        "損失的梯度最多只有 10^{bound:.1f} 能傳到這裡（每個 sigmoid 乘 0.25，再乘上譜範數；"
        "門檻 10^{threshold:g}）；實測梯度 RMS 在此權重為 {first:.2g}，在最後一層為 {last:.2g}"
    ),
    "The derivative of a sigmoid is at most 1/4, and they multiply.": (
        "sigmoid 的導數最大只有 1/4，而且會逐層相乘。"
    ),
    "Replace the sigmoids between layers by `nn.ReLU()` and initialize the weights with "
    "`nn.init.kaiming_normal_(weight, nonlinearity='relu')`.": (
        "把層與層之間的 sigmoid 換成 `nn.ReLU()`，並以 "
        "`nn.init.kaiming_normal_(weight, nonlinearity='relu')` 初始化權重。"
    ),
    "gates off the main path": "主要路徑之外的閘門",
    "a single output sigmoid": "只在輸出端的單一 sigmoid",
    "a skip connection": "跳接（skip connection）",
}
