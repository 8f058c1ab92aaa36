"""N005, N006, N010 to N021: rules of normalization, and what they read."""

MESSAGES: dict[str, str] = {
    # N005 bn-double-update
    "BatchNorm updates its statistics twice a step, from one batch again or from unlike batches.": (
        "BatchNorm 每步更新統計量兩次：同一批次重複計入，或來自不相似的批次。"
    ),
    "{count} normalization layers of {model} update their statistics twice for each call, first "
    "`{first}`": ("{model} 的 {count} 個正規化層每次呼叫都更新統計量兩次，最先是 `{first}`"),
    "Activation checkpointing runs them again in the backward pass.": (
        "activation checkpointing 在反向傳播時把它們又執行了一次。"
    ),
    "Call the normalizations outside of `checkpoint(...)`, or build them with "
    "momentum={momentum:.3g}, which twice is what is meant.": (
        "把正規化移到 `checkpoint(...)` 之外呼叫，或以 momentum={momentum:.3g} 建立，"
        "更新兩次即等於原意。"
    ),
    "passes without gradient in train mode": "train 模式下不計梯度的前向傳播",
    "two forward passes of a step give {count} normalization layers batches whose means lie up to "
    "{far:.2f} standard deviations apart, at `{worst}` (threshold {threshold:g} beyond the noise "
    "of sampling a batch)": (
        "一步之中的兩次前向傳播，給 {count} 個正規化層的批次平均最多相差 {far:.2f} 個標準差，"
        "在 `{worst}`（門檻為批次取樣雜訊之外 {threshold:g}）"
    ),
    "Unlike data pass the same layers in separate calls, each centred by itself.": (
        "不相似的資料分開呼叫同一些層，各自減去自己的平均。"
    ),
    "outputs = {model}(torch.cat([first, second]))": (
        "outputs = {model}(torch.cat([first, second]))"
    ),
    "a model never evaluated in eval mode": "從未在 eval 模式下評估的模型",
    # N006 norm-axis-wrong
    "A normalization works along another axis than that of the features it is given.": (
        "正規化所沿的軸，不是它所得輸入的特徵軸。"
    ),
    "The layer before it has its features on axis {axis}.": "前一層的特徵在軸 {axis} 上。",
    "{norm}(x.transpose({a}, {b})).transpose({a}, {b})  # with the size of axis {a}": (
        "{norm}(x.transpose({a}, {b})).transpose({a}, {b})  # 大小取軸 {a} 的長度"
    ),
    "layers that mix positions between two transpositions": "在兩次轉置之間混合位置的層",
    "`{layer}` ({kind}) normalizes from axis {own} on, and the features of what it is given lie on "
    "axis {given}": "`{layer}`（{kind}）從軸 {own} 起做正規化，而輸入的特徵在軸 {given}",
    "`{layer}` ({kind}) normalizes each entry of axis {own}, and the features of what it is given "
    "lie on axis {given}": (
        "`{layer}`（{kind}）對軸 {own} 的每一項做正規化，而輸入的特徵在軸 {given}"
    ),
    # N010 norm-eps-dominates
    "The eps of a normalization is larger than the variance that it is added to.": (
        "正規化的 eps 比它所加上的變異數還大。"
    ),
    "eps={eps} takes the place of the variance: of unit variance {left:.2g} is left behind "
    "`{layer}` (threshold {threshold:g}), in {count} of {norms} normalization layers": (
        "eps={eps} 取代了變異數：單位變異數在 `{layer}` 之後只剩 {left:.2g}"
        "（門檻 {threshold:g}），{norms} 個正規化層中有 {count} 個如此"
    ),
    "The variance of its input is {times:.2g} times eps.": (
        "其輸入的變異數是 eps 的 {times:.2g} 倍。"
    ),
    "Bring the input to a size of 1, or build the layer with a smaller eps.": (
        "把輸入調到大小約為 1，或以較小的 eps 建立該層。"
    ),
    "inputs that do not vary at all": "毫無變化的輸入",
    # N011 affine-collapse
    "The weights of normalizations are next to nothing, and let nothing through.": (
        "正規化層的權重幾乎為零，什麼都通不過。"
    ),
    "No skip connection goes around them, so nothing passes.": (
        "沒有繞過它們的殘差連接，因此什麼都通不過。"
    ),
    "They are in a group with weight decay.": "它們在有 weight decay 的參數組裡。",
    "for m in {model}.modules():\n"
    '    if hasattr(m, "eps") and getattr(m, "weight", None) is not None:\n'
    "        torch.nn.init.ones_(m.weight)": (
        "for m in {model}.modules():\n"
        '    if hasattr(m, "eps") and getattr(m, "weight", None) is not None:\n'
        "        torch.nn.init.ones_(m.weight)"
    ),
    "vectors = [p for p in {model}.parameters() if p.dim() < 2]\n"
    "matrices = [p for p in {model}.parameters() if p.dim() > 1]\n"
    'groups = [{{"params": matrices}}, {{"params": vectors, "weight_decay": 0.0}}]': (
        "vectors = [p for p in {model}.parameters() if p.dim() < 2]\n"
        "matrices = [p for p in {model}.parameters() if p.dim() > 1]\n"
        'groups = [{{"params": matrices}}, {{"params": vectors, "weight_decay": 0.0}}]'
    ),
    "a zero start at the end of residual branches": "殘差分支末端的零起始",
    "weight decay has brought the weights of {count} of {norms} normalization layers under "
    "{ratio:g} of their first size, of `{first}` to {left:.2g} of it": (
        "weight decay 使 {norms} 個正規化層中 {count} 個的權重降到最初大小的 {ratio:g} 以下，"
        "`{first}` 只剩 {left:.2g}"
    ),
    "the weights of all {count} normalization layers were 0 at the first step and have stayed near "
    "it": "全部 {count} 個正規化層的權重在第一步時都是 0，之後仍停在附近",
    # N012 norm-input-degenerate
    "A normalization takes mean and variance of single numbers, and so erases its input.": (
        "正規化對單一數值取平均與變異數，因而抹去輸入。"
    ),
    "`{layer}` takes mean and variance of single numbers, so that its output is its bias whatever "
    "its input ({count} of {norms} normalization layers)": (
        "`{layer}` 對單一數值取平均與變異數，因此無論輸入為何，輸出都是它的 bias"
        "（{norms} 個正規化層中有 {count} 個）"
    ),
    # N013 stream-growth
    "The signal grows from block to block, since nothing normalizes what the blocks add.": (
        "訊號逐個區塊變大，因為沒有東西把各區塊所加的量正規化。"
    ),
    "the signal grows {times:.3g}-fold from `{first}` to `{last}` at the first step (threshold "
    "{threshold:g}), over {count} blocks": (
        "第一步時，訊號經 {count} 個區塊從 `{first}` 到 `{last}` 變為 {times:.3g} 倍"
        "（門檻 {threshold:g}）"
    ),
    "Nothing normalizes what each block adds.": "沒有東西把各區塊所加的量正規化。",
    "x = x + branch(nn.LayerNorm(dim)(x))  # in every block": (
        "x = x + branch(nn.LayerNorm(dim)(x))  # 在每個區塊"
    ),
    # N014 replica-statistics
    "Replicas share their weights but not their running statistics, and one is evaluated.": (
        "複本共用權重卻不共用 running 統計量，而受評估的是其中之一。"
    ),
    "no replica of a model that is evaluated was trained": "沒有訓練過受評估模型的複本",
    "{model} and {replica} have the same weights, but running statistics that lie {gap:.2f} "
    "standard deviations apart at `{norm}` (threshold {threshold:g})": (
        "{model} 與 {replica} 權重相同，但 running 統計量在 `{norm}` 相差 {gap:.2f} 個標準差"
        "（門檻 {threshold:g}）"
    ),
    "Each replica averages its own shard, and the shards are unlike.": (
        "每個複本只平均自己的分片，而各分片並不相似。"
    ),
    "Average the buffers of all replicas into {model} before it is evaluated.": (
        "評估之前，把所有複本的 buffer 平均到 {model}。"
    ),
    # N015 statistics-in-half
    "Running statistics are kept in half precision, and stop moving before they are right.": (
        "running 統計量以半精度保存，還沒到位就不再移動。"
    ),
    "the running statistics of {count} normalization layers are {dtype} and stall {lost:.0%} or "
    "more from their goal with momentum={momentum} (threshold {threshold:.0%}), first `{first}`": (
        "{count} 個正規化層的 running 統計量為 {dtype}，在 momentum={momentum} 下會停在離目標 "
        "{lost:.0%} 以上之處（門檻 {threshold:.0%}），最先是 `{first}`"
    ),
    "The whole model was cast, its buffers with it.": "整個模型連同 buffer 都被轉型了。",
    'for m in {model}.modules():\n    if hasattr(m, "running_mean"):\n        m.float()': (
        'for m in {model}.modules():\n    if hasattr(m, "running_mean"):\n        m.float()'
    ),
    # N016 frozen-but-updating
    "A backbone is frozen, but its BatchNorm normalizes by and averages the new batches.": (
        "骨幹已凍結，但其 BatchNorm 仍以新批次做正規化並加以平均。"
    ),
    "{count} normalization layers of the frozen part of {model} have normalized by the batch and "
    "updated their statistics for {since} steps (threshold {threshold:g}), first `{first}`": (
        "{model} 凍結部分的 {count} 個正規化層已有 {since} 步以批次做正規化並更新統計量"
        "（門檻 {threshold:g}），最先是 `{first}`"
    ),
    "Weights are frozen by requires_grad, statistics by eval mode alone.": (
        "requires_grad 凍結的是權重；統計量只有 eval 模式才會凍結。"
    ),
    "{model}.train()\n"
    "for m in {model}.modules():\n"
    '    if hasattr(m, "running_mean") and not any(p.requires_grad for p in m.parameters()):\n'
    "        m.eval()": (
        "{model}.train()\n"
        "for m in {model}.modules():\n"
        '    if hasattr(m, "running_mean") and not any(p.requires_grad for p in m.parameters()):\n'
        "        m.eval()"
    ),
    "frozen layers behind trained ones": "位於受訓練的層之後的凍結層",
    # N017 frozen-statistics-misfit
    "Frozen BatchNorm statistics are far from those of the data that the layers are given.": (
        "凍結的 BatchNorm 統計量與該層所得資料的統計量相差甚遠。"
    ),
    "what {count} frozen normalization layers make of a batch is off by up to {gap:.3g} standard "
    "deviations, at `{worst}` (threshold {threshold:g})": (
        "{count} 個凍結的正規化層處理批次的結果最多偏移 {gap:.3g} 個標準差，在 `{worst}`"
        "（門檻 {threshold:g}）"
    ),
    "The inputs are prepared otherwise than those of pretraining.": (
        "輸入的前處理與預訓練時不同。"
    ),
    "images = (images / 255 - mean) / std  # of the weights' own preprocessing": (
        "images = (images / 255 - mean) / std  # 用這組權重自己的前處理"
    ),
    "layers that normalize by the batch": "以批次做正規化的層",
    # N018 norm-on-output
    "What is predicted is the output of a normalization.": ("預測值就是某個正規化的輸出。"),
    "the prediction that the loss compares with its target is the output of `{layer}` ({kind})": (
        "損失拿來與目標比較的預測值，是 `{layer}`（{kind}）的輸出"
    ),
    "Weight and bias of the layer alone say how large a prediction is.": (
        "預測值的大小只由該層的 weight 與 bias 決定。"
    ),
    "Without weight and bias no prediction can be of the target's size.": (
        "沒有 weight 與 bias，預測值就不可能有目標的大小。"
    ),
    "Leave out `{layer}`; standardize the targets instead.": ("拿掉 `{layer}`，改為把目標標準化。"),
    # N019 bn-momentum-high
    "Running statistics are those of the last batch or two, and as noisy.": (
        "running 統計量就是最後一兩個批次的統計量，雜訊也一樣大。"
    ),
    "with momentum={momentum:g} the running statistics of {count} normalization layers are those "
    "of the last batch or two, and off by {noise:.2f} standard deviations by chance alone "
    "(threshold {threshold:g})": (
        "在 momentum={momentum:g} 下，{count} 個正規化層的 running 統計量就是最後一兩個批次的，"
        "單是偶然就偏移 {noise:.2f} 個標準差（門檻 {threshold:g}）"
    ),
    "In PyTorch `momentum` is the weight of the new value.": (
        "在 PyTorch 中，`momentum` 是新值的權重。"
    ),
    "momentum={other:.3g}": "momentum={other:.3g}",
    "large batches": "大批次",
    # N020 no-running-statistics
    "BatchNorm keeps no running statistics, so that evaluation normalizes by the batch, too.": (
        "BatchNorm 不保存 running 統計量，因此評估時也以批次做正規化。"
    ),
    "{count} BatchNorm layers of {model} keep no running statistics, and in {forwards:.0f} forward "
    "passes in eval mode normalized by the batch": (
        "{model} 的 {count} 個 BatchNorm 層不保存 running 統計量，在 eval 模式的 {forwards:.0f} "
        "次前向傳播中以批次做正規化"
    ),
    "`track_running_stats=False` leaves eval mode nothing to use.": (
        "`track_running_stats=False` 使 eval 模式沒有統計量可用。"
    ),
    "nn.{kind}(features)  # track_running_stats is True by default": (
        "nn.{kind}(features)  # track_running_stats 預設為 True"
    ),
    "`{layer}` of {model} keeps no running statistics: in evaluation the output for a sample moves "
    "by {mixing:.2g} of its RMS when only the other samples of the batch are changed": (
        "{model} 的 `{layer}` 不保存 running 統計量：在評估時，只更換批次中的其他樣本，某個樣本的"
        "輸出就移動其 RMS 的 {mixing:.2g}"
    ),
    # N021 bn-counts-padding
    "BatchNorm averages padding as if it were data.": "BatchNorm 把填補當成資料來平均。",
    "{rows:.0%} of the vectors that `{norm}` averages are nothing but zeros (threshold "
    "{threshold:.0%}), as padding is": (
        "`{norm}` 所平均的向量中有 {rows:.0%} 全為零（門檻 {threshold:.0%}），如同填補"
    ),
    "Padding counts as data, and as much more as sequences are shorter.": (
        "填補被算作資料，序列越短，算得越多。"
    ),
    "out = torch.zeros_like(x)\nout[mask] = {norm}(x[mask])  # the real positions alone": (
        "out = torch.zeros_like(x)\nout[mask] = {norm}(x[mask])  # 只取真正的位置"
    ),
    # what they read
    "Calls of a BatchNorm in the step's training forwards, without those of recomputation.": (
        "BatchNorm 在這一步的訓練前向傳播中被呼叫的次數，不含重算。"
    ),
    "RMS over channels of how far the mean of the batch in the first forward pass of the step lies "
    "from that in the second, in the standard deviation of both. NaN where a layer was updated in "
    "one of them only, or rounding would dominate.": (
        "這一步第一次前向傳播的批次平均與第二次的相差多少，以兩者的標準差為單位，取各通道的 RMS。"
        "某層只在其中一次更新，或捨入誤差佔優時為 NaN。"
    ),
    "RMS over channels of sqrt(b^2 + (a - 1)^2), a the deviation and b the mean of what a "
    "BatchNorm in eval mode makes of its input before weight and bias: 0 where its running "
    "statistics are the input's. Taken as rarely as vectors.": (
        "sqrt(b^2 + (a - 1)^2) 在各通道的 RMS；a 與 b 是 eval 模式的 BatchNorm 在乘上 weight、"
        "加上 bias 之前所得結果的標準差與平均：running 統計量與輸入相符時為 0。"
        "取樣與向量一樣稀疏。"
    ),
    "Fraction of the vectors given to a BatchNorm of sequences or features in training that are "
    "all zeros. Taken as rarely as vectors.": (
        "訓練時給序列或特徵的 BatchNorm 的向量中，全為零者所佔的比例。取樣與向量一樣稀疏。"
    ),
    "Elements that share a mean and a variance in a normalization; taken in the first two measured "
    "steps.": "正規化中共用一個平均與變異數的元素個數；在最初兩個測量步取得。",
    "Axis, from 0, of a LayerNorm's or BatchNorm's input that holds the features of the layer "
    "before it, read off the autograd graph in the first two measured steps.": (
        "LayerNorm 或 BatchNorm 的輸入中，前一層的特徵所在的軸（從 0 起），"
        "在最初兩個測量步從 autograd 圖讀出。"
    ),
    "Axis, from 0, that such a layer takes for that of the features: 1 for BatchNorm, the first of "
    "those that it normalizes over for LayerNorm.": (
        "這種層當作特徵軸的軸（從 0 起）：BatchNorm 為 1，LayerNorm 為它所正規化的第一個軸。"
    ),
    # N011 affine-collapse, drawn around zero
    "the weights of all {count} normalization layers were small at the first step, {size:.2g} at "
    "most (RMS), and have stayed so": (
        "全部 {count} 個正規化層的權重在第一步都很小，至多 {size:.2g}（RMS），此後仍然如此"
    ),
    "An initialization meant for matrices has drawn them, too.": (
        "為矩陣準備的初始化也抽取了它們。"
    ),
    # N018 norm-on-output, of scores
    "the scores that cross-entropy is given are the output of `{layer}` ({kind}), which has no "
    "weight: the loss cannot fall below {least:.3f}": (
        "交叉熵所得的分數是 `{layer}`（{kind}）的輸出，它沒有權重：損失不可能低於 {least:.3f}"
    ),
    "Scores of unit size cannot be sure of a class.": "單位大小的分數無法確定任何類別。",
    "Leave out `{layer}`, or multiply its output by a factor.": (
        "移除 `{layer}`，或將其輸出乘以一個係數。"
    ),
    # N022 statistics-never-taken
    "A trained model is evaluated with running statistics that no batch has ever touched.": (
        "評估訓練過的模型時，所用的移動統計量從未被任何批次更新。"
    ),
    "in eval mode {count} trained layers of {model} used the running statistics they began with, "
    "0 and 1, first `{first}`": (
        "在 eval 模式下，{model} 有 {count} 個訓練過的層使用最初的移動統計量 0 與 1，"
        "最先是 `{first}`"
    ),
    "No batch has updated them, or none since they were reset.": (
        "沒有批次更新過它們，或重設之後沒有。"
    ),
    "y = F.batch_norm(x, mean, var, weight, bias, training=self.training)\n# and {model}.train() "
    "wherever statistics are to be estimated": (
        "y = F.batch_norm(x, mean, var, weight, bias, training=self.training)\n"
        "# 並在要估計統計量之處呼叫 {model}.train()"
    ),
}
