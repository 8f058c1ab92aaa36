"""The family S: what is wrong with the model before it takes a step."""

MESSAGES: dict[str, str] = {
    "the input is not made of real numbers": "輸入不是由實數組成",
    "no input reaches all linear layers and convolutions": "沒有一個輸入能到達所有的線性層與卷積",
    "RMS of f(x + d) + f(x - d) - 2 f(x) over that of f(x + d) - f(x - d), the greatest of all "
    "layers with weights: 0 if they are affine in an input.": (
        "f(x + d) + f(x - d) - 2 f(x) 的 RMS 除以 f(x + d) - f(x - d) 的 RMS，取所有帶權重的層中"
        "最大者：若它們是某個輸入的仿射函數則為 0。"
    ),
    "The layers of the network are together one affine map, as if there were only one.": (
        "網路的各層合起來只是一個仿射映射，如同只有一層。"
    ),
    "{layers} layers up to `{module}` of {model} are together one affine map: it bends by "
    "{curvature:.1g} of its slope": (
        "{model} 到 `{module}` 為止的 {layers} 層合起來只是一個仿射映射：其彎曲僅為斜率的 "
        "{curvature:.1g}"
    ),
    "No nonlinear function stands between the layers.": "各層之間沒有非線性函數。",
    "Put `nn.ReLU()` or another nonlinear function between the layers.": (
        "請在各層之間加上 `nn.ReLU()` 或其他非線性函數。"
    ),
    "a narrow layer on purpose": "刻意安排的窄層",
    "a single linear layer": "單一的線性層",
    "Weights whose units are all alike after three steps of gradient descent.": (
        "經過三步梯度下降後，所有單元仍然相同的權重個數。"
    ),
    "All units of a layer begin alike and are trained alike, so that they are one unit.": (
        "一層的所有單元以相同的值開始，也受到相同的訓練，因此等於只有一個單元。"
    ),
    "all {units} units of `{param}` are alike, and still are after three steps of gradient "
    "descent; so it is in {layers} of {model}": (
        "`{param}` 的全部 {units} 個單元都相同，經過三步梯度下降後仍然相同；{model} 中共有 "
        "{layers}如此"
    ),
    "{n} weight": "{n} 個權重",
    "{n} weights": "{n} 個權重",
    "They were initialized with the same numbers, and nothing tells them apart.": (
        "它們以相同的數初始化，沒有任何東西能區分它們。"
    ),
    "nn.init.kaiming_normal_({param})": "nn.init.kaiming_normal_({param})",
    "a zero that training makes different": "訓練後會變得不同的零",
    "a layer of one unit": "只有一個單元的層",
    "A module of the model is never called in its forward pass.": (
        "模型中有模組在前向傳遞時從未被呼叫。"
    ),
    "`{module}` ({kind}, {parameters} to be trained) is never called in the forward pass": (
        "`{module}`（{kind}，有 {parameters}要訓練）在前向傳遞時從未被呼叫"
    ),
    "so it is with {n} more of this kind": "同一種的還有 {n} 個也是如此",
    "The model makes the module, and its `forward` does not use it.": (
        "模型建立了這個模組，但其 `forward` 沒有使用它。"
    ),
    "a weight that is used without a call": "不經呼叫而使用的權重",
    "the model has no normalization layer": "模型沒有正規化層",
    "Numbers that a normalization takes one mean and deviation of.": (
        "正規化用來計算一個平均與標準差的數的個數。"
    ),
    "A normalization layer takes its mean over the wrong axes, or over too few numbers.": (
        "正規化層沿著錯誤的軸取平均，或只對太少的數取平均。"
    ),
    "`{module}` ({kind}) normalizes over {size} of its input {shape}": (
        "`{module}`（{kind}）對其輸入 {shape} 的{size}作正規化"
    ),
    "groups of {n} numbers": "每組 {n} 個數",
    "A number less its own mean is 0: the input is erased.": (
        "一個數減去它自己的平均是 0：輸入被抹除了。"
    ),
    "The deviation of so few numbers is mostly chance.": "這麼少的數的標準差大半是偶然。",
    "Choose fewer groups, other axes, or a larger batch.": (
        "請選擇較少的組、其他的軸，或較大的批次。"
    ),
    "`{module}` ({kind}) is given the output of `{source}`, {shape} with the channels on axis 1, "
    "and normalizes along space": (
        "`{module}`（{kind}）收到 `{source}` 的輸出 {shape}，其通道在第 1 軸，卻沿著空間作正規化"
    ),
    "It takes the last axes, and a convolution has its channels before them.": (
        "它取最後的軸，而卷積的通道在它們之前。"
    ),
    "norm(x.movedim(1, -1)).movedim(-1, 1)  # or nn.GroupNorm(1, channels)": (
        "norm(x.movedim(1, -1)).movedim(-1, 1)  # 或 nn.GroupNorm(1, channels)"
    ),
    "Layers whose bias the normalization behind them subtracts.": (
        "偏差被其後的正規化減去的層的個數。"
    ),
    "The bias of a layer is subtracted again by the normalization that follows.": (
        "一層的偏差又被其後的正規化減去。"
    ),
    "the bias of {layers} is subtracted again by the normalization that follows: first "
    "`{module}`, by `{norm}`": (
        "{layers}的偏差又被其後的正規化減去：首先是 `{module}`，被 `{norm}` 減去"
    ),
    "The mean that is subtracted contains the bias.": "被減去的平均包含了偏差。",
    "Make the layer with `bias=False`.": "請以 `bias=False` 建立該層。",
    "The loss depends on parameters that its gradient does not reach.": (
        "損失取決於某些參數，其梯度卻到不了那裡。"
    ),
    "Parameters to be trained that have no gradient after a backward pass.": (
        "要訓練而在反向傳遞後沒有梯度的參數個數。"
    ),
    "no gradient reaches {params} up to `{module}`, though changing them changes the loss by "
    "{effect:.2g} of its value": (
        "到 `{module}` 為止的 {params}沒有梯度，然而改變它們會使損失改變其值的 {effect:.2g}"
    ),
    "no gradient reaches {params} up to `{module}`, and changing them does not change the loss": (
        "到 `{module}` 為止的 {params}沒有梯度，而改變它們也不會改變損失"
    ),
    "The graph is cut between them and the loss.": "計算圖在它們與損失之間斷開了。",
    "Their output does not go into this loss.": "它們的輸出沒有進入這個損失。",
    "Add it to the loss, or leave these parameters out of the optimizer.": (
        "請將其加入損失，或不要把這些參數交給最佳化器。"
    ),
    "parameters that the optimizer does not hold": "最佳化器未持有的參數",
}
