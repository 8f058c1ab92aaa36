"""G001 vanishing-depth."""

MESSAGES: dict[str, str] = {
    "gradient RMS is {first_rms:.2g} at `{first}` and {last_rms:.2g} at `{last}`: a ratio of "
    "{ratio:.2g} (threshold {least_ratio:g}), falling by {slope:.2f} decades per layer (threshold "
    "{least_slope:g}) over {layers} {kind} weights": (
        "梯度 RMS 在 `{first}` 為 {first_rms:.2g}，在 `{last}` 為 {last_rms:.2g}：比值 "
        "{ratio:.2g}（門檻 {least_ratio:g}），在 {layers} 個 {kind} 權重間每層下降 {slope:.2f} 個"
        "數量級（門檻 {least_slope:g}）"
    ),
    "Every layer shrinks the gradient that passes it.": "每一層都使通過的梯度縮小。",
    "Use ReLU with `nn.init.kaiming_normal_(weight, nonlinearity='relu')`, normalization layers, "
    "or skip connections.": (
        "使用 ReLU 並搭配 `nn.init.kaiming_normal_(weight, nonlinearity='relu')`，"
        "或加入正規化層、跳接。"
    ),
    "the loss has fallen all the same": "損失仍然下降",
    "frozen layers": "已凍結的層",
    "zero-initialized branches": "初始為 0 的分支",
}
