"""G002 exploding-depth."""

MESSAGES: dict[str, str] = {
    "gradient RMS is {first_rms:.2g} at {first} and {last_rms:.2g} at {last}: a ratio of "
    "{ratio:.2g} (threshold {threshold:g}), growing by {slope:.2f} decades per layer "
    "towards the first of {layers} {kind} layers{harm}": (
        "梯度 RMS 在 {first} 為 {first_rms:.2g}，在 {last} 為 {last_rms:.2g}：比值 {ratio:.2g}"
        "（門檻 {threshold:g}），在 {layers} 個 {kind} 層之間，愈靠近第一層，每層增加 "
        "{slope:.2f} 個數量級{harm}"
    ),
    "the output of `{module}`": "`{module}` 的輸出",
    "`{weight}`": "`{weight}`",
    "; the step changed `{weight}` by {update:.2g} of its size, and the loss is no longer "
    "finite": "；這一步使 `{weight}` 改變了自身大小的 {update:.2g} 倍，損失已不是有限值",
    "; the step changed `{weight}` by {update:.2g} of its size": (
        "；這一步使 `{weight}` 改變了自身大小的 {update:.2g} 倍"
    ),
    "; the first gradient is {growth:.3g} times what it was {steps} measured steps ago": (
        "；第一層的梯度是 {steps} 個量測步之前的 {growth:.3g} 倍"
    ),
    "Every layer stretches the gradient that passes it, from the first step on: the "
    "weights start too large for a network of this depth.": (
        "從第一步開始，每一層都會放大通過的梯度：以這個網路的深度而言，權重的初始值太大。"
    ),
    "Every layer stretches the gradient that passes it, since the weights have grown in "
    "training.": "權重在訓練中變大，因此每一層都會放大通過的梯度。",
    "for weight in model.parameters():\n"
    "    if weight.dim() >= 2:\n"
    "        torch.nn.init.xavier_normal_(weight)  # before ReLU: kaiming_normal_\n"
    "# and, before optimizer.step():\n"
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)": (
        "for weight in model.parameters():\n"
        "    if weight.dim() >= 2:\n"
        "        torch.nn.init.xavier_normal_(weight)  # 在 ReLU 之前：kaiming_normal_\n"
        "# 並在 optimizer.step() 之前：\n"
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    ),
    "a jump at a single layer": "只在單一層的跳升",
    "larger first gradients that do no harm": "前面的層梯度較大但無害",
    "clipped gradients": "已裁剪的梯度",
}
