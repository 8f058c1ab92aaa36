"""F002 variance-drift, and the probe that feeds it."""

MESSAGES: dict[str, str] = {
    "Before training, signal or gradient vanish or explode from layer to layer.": (
        "訓練開始前，訊號或梯度便逐層消失或爆炸。"
    ),
    "the model is called with keywords besides its arguments": (
        "呼叫模型時除位置引數外還有關鍵字引數"
    ),
    "signal": "訊號",
    "before training the {what} changes by the factor {ratio:.2g} over {layers} layers: the "
    "gradient's norm at `{first}` is {fall:.2g} of that at `{last}`, and the signal's RMS grows "
    "{growth:.2g} times from the first to the last hidden layer": (
        "訓練開始前，{what}經過 {layers} 層變為 {ratio:.2g} 倍：`{first}` 處的梯度範數為 "
        "`{last}` 處的 {fall:.2g} 倍，訊號的 RMS 從第一層到最後的隱藏層變為 {growth:.2g} 倍"
    ),
    "The gains of the weights do not fit the activations between them.": (
        "權重的增益與其間的激活函數不相稱。"
    ),
    "pooling over positions": "對位置的池化",
    "branches that begin with zeros": "從零開始的分支",
    "std = {gain:.4g} / math.sqrt(layer.weight[0].numel())  # the right gain; now {now:.3g}\n"
    "nn.init.normal_(layer.weight, std=std); nn.init.zeros_(layer.bias)  # in every layer but the "
    "last": (
        "std = {gain:.4g} / math.sqrt(layer.weight[0].numel())  # 正確的增益；目前為 {now:.3g}\n"
        "nn.init.normal_(layer.weight, std=std); nn.init.zeros_(layer.bias)  # 最後一層除外的每一層"
    ),
    "No gain mends it: with the right ones the gradient would still be {mended:.1g} times. "
    "Replace the activations ({activations}) by `nn.ReLU()` with "
    "`nn.init.kaiming_normal_(weight, nonlinearity='relu')`, or add skip connections or "
    "normalization.": (
        "任何增益都修不好：即使增益正確，梯度仍會變為 {mended:.1g} 倍。"
        "把激活函數（{activations}）換成 `nn.ReLU()`，並用 "
        "`nn.init.kaiming_normal_(weight, nonlinearity='relu')`，或加入跳接或正規化。"
    ),
    "nn.init.kaiming_normal_(layer.weight, nonlinearity='relu'); nn.init.zeros_(layer.bias)  # in "
    "every layer before a ReLU": (
        "nn.init.kaiming_normal_(layer.weight, nonlinearity='relu'); "
        "nn.init.zeros_(layer.bias)  # 在 ReLU 之前的每一層"
    ),
    "RMS of a layer's output before training.": "訓練開始前一層輸出的 RMS。",
    "What theory expects of it from the layer's input.": "理論由該層輸入所預期的值。",
    "RMS of the gradient at a layer's output before training, of a random direction at the "
    "network's.": "訓練開始前一層輸出處梯度的 RMS；梯度來自網路輸出處的隨機方向。",
    "Norm of that gradient at the first layer with weights over that at the last.": (
        "該梯度在第一個有權重的層的範數，除以在最後一個的。"
    ),
    "RMS of the output of the last layer with weights but one over that of the first.": (
        "倒數第二個有權重的層之輸出 RMS，除以第一個的。"
    ),
}
