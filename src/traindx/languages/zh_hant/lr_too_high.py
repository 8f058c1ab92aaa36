"""O001 lr-too-high."""

MESSAGES: dict[str, str] = {
    "in its first steps {optimizer} at lr {lr:.3g} changes the weights of {model} by "
    "{ratio:.2g} of their size in the median of {weights} (threshold {threshold:g}, "
    "healthy is 0.001 to 0.1){consequence}": (
        "{optimizer} 以 lr {lr:.3g} 在最初幾步對 {model} 權重的改變，達到權重本身大小的 "
        "{ratio:.2g} 倍（{weights} 個權重的中位數；門檻 {threshold:g}，健康的範圍是 0.001 到 0.1）"
        "{consequence}"
    ),
    "; the loss is no longer finite": "；損失已不是有限值",
    "; the loss rises to {rise:.3g} times the first one early on, and is at {recent:.3g} "
    "times it now": "；損失在初期升到最初的 {rise:.3g} 倍，目前為最初的 {recent:.3g} 倍",
    "; the loss is at {recent:.3g} times the first one now": "；損失目前為最初的 {recent:.3g} 倍",
    "The learning rate is too high for gradients of this size, and inputs with an RMS of "
    "{rms:.3g} make them so large.": (
        "對這樣大的梯度而言學習率太高，而梯度這麼大是因為輸入的 RMS 達到 {rms:.3g}。"
    ),
    "{optimizer} moves every entry of a weight by about lr, however small the gradient, "
    "and lr is large beside the weights.": (
        "無論梯度多小，{optimizer} 每一步都會把權重的每個元素移動約 lr，而 lr 與權重相比太大。"
    ),
    "The learning rate is too high for gradients of this size.": "對這樣大的梯度而言學習率太高。",
    "for group in optimizer.param_groups:  # after {optimizer} is built\n"
    '    group["lr"] *= {factor:.0e}': (
        "for group in optimizer.param_groups:  # 在建立 {optimizer} 之後\n"
        '    group["lr"] *= {factor:.0e}'
    ),
    "for group in optimizer.param_groups:  # after {optimizer} is built\n"
    '    group["lr"] = {new:g}  # in place of {old:g}': (
        "for group in optimizer.param_groups:  # 在建立 {optimizer} 之後\n"
        '    group["lr"] = {new:g}  # 取代 {old:g}'
    ),
    "warmup": "學習率暖身",
    "weights that start at zero": "從 0 開始的權重",
    "gradients that explode with the depth from the start": "從一開始就隨深度爆炸的梯度",
}
