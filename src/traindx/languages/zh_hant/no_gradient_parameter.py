"""G003 no-gradient-parameter."""

MESSAGES: dict[str, str] = {
    "The module runs in the forward pass, but the graph is cut between it and the loss.": (
        "此模組有參與前向傳播，但它與損失之間的計算圖被切斷了。"
    ),
    "Look behind `{module}` for `.detach()`, `.data`, `.item()`, `.numpy()`, `argmax` or "
    "`torch.no_grad()`, and take it out.": (
        "檢查 `{module}` 之後是否有 `.detach()`、`.data`、`.item()`、`.numpy()`、`argmax` 或 "
        "`torch.no_grad()`，並將它移除。"
    ),
    "The module runs in the forward pass, but nothing after it leads to the loss.": (
        "此模組有參與前向傳播，但它的輸出沒有通往損失。"
    ),
    "Add the output of `{module}` to the loss, or leave its parameters out of the optimizer.": (
        "把 `{module}` 的輸出納入損失，或不要把它的參數交給最佳化器。"
    ),
    "The module is never called in the forward pass.": "前向傳播從未呼叫此模組。",
    "Call `{module}` in `forward`, or delete it.": "在 `forward` 中呼叫 `{module}`，或將它刪除。",
    "Backward reaches the module, but a factor on the way is 0: dead units, a product with zero, "
    "or an underflow of half precision.": (
        "反向傳播到得了此模組，但途中有因子為 0：死亡的單元、乘上 0，或半精度下溢。"
    ),
    "Check what follows `{module}`: units that are never active, a mask or scale of 0, float16 "
    "without a GradScaler.": (
        "檢查 `{module}` 之後的部分：從不活化的單元、為 0 的遮罩或縮放、"
        "未搭配 GradScaler 的 float16。"
    ),
    "the gradient of {parameters} of {modules} was {missing} at all {measured} measured steps, "
    "over {steps} steps": (
        "{modules} 的 {parameters}，在 {steps} 步期間的全部 {measured} 個量測步中，梯度都{missing}"
    ),
    "{n} parameter": "{n} 個參數",
    "{n} parameters": "{n} 個參數",
    "exactly 0": "恰為 0",
    "missing": "不存在",
    "`{module}`": "`{module}`",
    "`{module}` and {more}": "`{module}` 及{more}",
    "{n} module before it": "其前的 {n} 個模組",
    "{n} modules before it": "其前的 {n} 個模組",
    "frozen parameters": "已凍結的參數",
    "sparse gradients": "稀疏梯度",
    "zero only in the first step": "只有第一步為 0",
}
