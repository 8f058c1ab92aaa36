"""S008 coordinate-check and its probe, and what F002 says of a chain of sigmoids."""

MESSAGES: dict[str, str] = {
    "no function makes the model in other widths": "沒有函式能以其他寬度建立模型",
    "no layer changes in a few steps in every width": "沒有任何層在每種寬度下都於數步內改變",
    "the model cannot be made with {argument}={size}: {error}": (
        "無法以 {argument}={size} 建立模型：{error}"
    ),
    "`{target}` has no argument `{argument}`. `--width-argument` needs the name of the one that "
    "says how wide the model is.": (
        "`{target}` 沒有參數 `{argument}`。`--width-argument` 需要的是表示模型寬度的參數名稱。"
    ),
    "What a few steps change in a layer's output grows with the width of the model.": (
        "數步訓練對某層輸出造成的改變，隨模型寬度增大。"
    ),
    "what {steps} steps of {optimizer} change in the output of `{layer}` grows as "
    "{argument}^{found:.2f} ({changes} at {widths}), and so it is in {growing} of {layers} "
    "layers": (
        "{optimizer} 的 {steps} 步對 `{layer}` 輸出造成的改變，以 {argument}^{found:.2f} 增大"
        "（寬度 {widths} 時為 {changes}），{layers} 層中有 {growing} 層如此"
    ),
    "The rates depend on the width, but not as they need to.": (
        "學習率隨寬度而異，但並非應有的方式。"
    ),
    "The learning rate and the initial weights are those of one width.": (
        "學習率與初始權重只適合一種寬度。"
    ),
    "# With Adam, for a model {argument} times as wide as the one that was tuned:\n"
    "# lr of hidden matrices / {argument}; lr and initial weights of the last / {argument}": (
        "# 使用 Adam，且模型寬度為調校時的 {argument} 倍時：\n"
        "# 隱藏層矩陣的 lr / {argument}；最後一層的 lr 與初始權重 / {argument}"
    ),
    "chance: three seeds agree": "偶然：三個種子一致",
    "Power of the model's width with which the change (RMS) of a layer's output in a few steps "
    "grows.": "數步訓練對某層輸出造成的改變（RMS），隨模型寬度的幾次方增大。",
    "{sigmoids} sigmoids one after another let through at most 0.25^{sigmoids} = {bound:.3g} of "
    "the gradient where the weights between have a spectral norm of 1.": (
        "連續 {sigmoids} 個 sigmoid 至多讓梯度的 0.25^{sigmoids} = {bound:.3g} 通過"
        "（其間權重的譜範數為 1 時）。"
    ),
}
