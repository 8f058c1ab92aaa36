"""E001 to E003, E006, E008 to E010: rules of evaluation and mode."""

MESSAGES: dict[str, str] = {
    "no pass without gradient was seen after training began": (
        "訓練開始後沒有看到不計梯度的前向傳播"
    ),
    "modules left in train mode": "留在 train 模式的模組",
    # E001 train-mode-in-eval
    "A model is evaluated without gradient while dropout or BatchNorm act as in training.": (
        "評估模型時雖不計梯度，dropout 或 BatchNorm 卻仍如訓練時運作。"
    ),
    "in {forwards:.0f} forward passes without gradient, all that there were, {dropping} dropout "
    "and {norms} BatchNorm layers of {model} acted as in training, first `{first}`": (
        "在全部 {forwards:.0f} 次不計梯度的前向傳播中，{model} 有 {dropping} 個 dropout 層與 "
        "{norms} 個 BatchNorm 層如訓練時運作，最先是 `{first}`"
    ),
    "Nothing puts {model} as a whole in eval mode before it is evaluated.": (
        "評估之前沒有把整個 {model} 設為 eval 模式。"
    ),
    "The training of {model} ended {steps} steps before, and it was left in train mode.": (
        "{model} 的訓練在 {steps} 步之前就結束了，卻留在 train 模式。"
    ),
    "{model}.eval()\nwith torch.no_grad():\n    ...  # the evaluation\n{model}.train()": (
        "{model}.eval()\nwith torch.no_grad():\n    ...  # 評估\n{model}.train()"
    ),
    "a pass that estimates statistics, followed by one in eval mode": (
        "估計統計量的前向傳播，其後接著 eval 模式的前向傳播"
    ),
    "in each of {evaluations} evaluations {model} was in eval mode for one forward pass, and for "
    "the others, {forwards:.0f} together, {dropping} dropout and {norms} BatchNorm layers acted as "
    "in training, first `{first}`": (
        "在 {evaluations} 次評估中，{model} 每次都只有一次前向傳播處於 eval 模式，其餘合計 "
        "{forwards:.0f} 次中有 {dropping} 個 dropout 層與 {norms} 個 BatchNorm 層如訓練時運作，"
        "最先是 `{first}`"
    ),
    "`{model}.train()` stands within the loop of the evaluation.": (
        "`{model}.train()` 位於評估的迴圈之內。"
    ),
    "Call `{model}.train()` after the loop, not in it.": (
        "在迴圈之後呼叫 `{model}.train()`，不要在迴圈內。"
    ),
    "passes that are a part of every training step": "屬於每個訓練步一部分的前向傳播",
    # E002 eval-mode-in-train
    "A model trains in eval mode, in which its dropout or spectral normalization does nothing.": (
        "模型以 eval 模式訓練，其 dropout 或 spectral normalization 因而毫無作用。"
    ),
    "{count} layers with spectral normalization": "{count} 個有 spectral normalization 的層",
    "{count} dropout layers": "{count} 個 dropout 層",
    "{model} has trained in eval mode for {since} steps (threshold {threshold:g}), in which its "
    "{what} did nothing": (
        "{model} 以 eval 模式訓練了 {since} 步（門檻 {threshold:g}），其間它的{what}毫無作用"
    ),
    "{model} was in eval mode when its training began.": "{model} 在訓練開始時就處於 eval 模式。",
    "{model} trained in eval mode in {part:.0%} of the last measured steps (threshold "
    "{threshold:.0%}), in which its {what} did nothing, and in train mode in the others": (
        "{model} 在最近量測的步中有 {part:.0%} 以 eval 模式訓練（門檻 {threshold:.0%}），"
        "其間它的{what}毫無作用，其餘則以 train 模式訓練"
    ),
    "An evaluation within the epoch switched {model} to eval mode, and train mode came back with "
    "the next epoch.": (
        "epoch 中途的一次評估把 {model} 切換為 eval 模式，到下一個 epoch 才回到 train 模式。"
    ),
    "Call `{model}.train()` right after each evaluation.": (
        "每次評估之後立即呼叫 `{model}.train()`。"
    ),
    "dropout switched off from the start": "從一開始就關掉的 dropout",
    # E003 dropout-in-eval
    "A model draws random numbers in eval mode, as dropout does that is never switched off.": (
        "模型在 eval 模式下抽取隨機數，如同從未關掉的 dropout。"
    ),
    "all {total:.0f} forward passes of {model} in eval mode drew random numbers, though none of "
    "its dropout modules was in train mode (threshold {threshold:g} passes)": (
        "{model} 在 eval 模式下的全部 {total:.0f} 次前向傳播都抽取了隨機數，"
        "雖然沒有任何 dropout 模組處於 train 模式（門檻 {threshold:g} 次）"
    ),
    "Something random in {model} does not follow its mode.": (
        "{model} 中某個隨機的部分不跟隨它的模式。"
    ),
    "F.dropout(x, p, training=self.training)  # or a module nn.Dropout(p)": (
        "F.dropout(x, p, training=self.training)  # 或改用模組 nn.Dropout(p)"
    ),
    # E006 copy-differs
    "A copy that is evaluated in place of the trained model has lost a part of it.": (
        "代替訓練所得的模型受評估的副本，遺失了其中一部分。"
    ),
    "no copy of a trained model was evaluated": "沒有評估過受訓練模型的副本",
    "No batch has ever updated the statistics of {copy}.": "從未有批次更新過 {copy} 的統計量。",
    "Its parameters were brought up to date, its statistics were not.": (
        "它的參數更新了，統計量卻沒有。"
    ),
    "{copy} is evaluated with the parameters of {model}, but its running statistics lie {gap:.2f} "
    "standard deviations from those of {model} (threshold {threshold:g}), first at `{norm}`": (
        "{copy} 以 {model} 的參數受評估，但它的 running 統計量與 {model} 的相差 {gap:.2f} 個標準差"
        "（門檻 {threshold:g}），在 `{norm}`"
    ),
    "with torch.no_grad():\n"
    "    for mine, trained in zip({copy}.buffers(), {model}.buffers()):\n"
    "        mine.copy_(trained)\n"
    "# Of an average of far weights: torch.optim.swa_utils.update_bn(train_loader, {copy})": (
        "with torch.no_grad():\n"
        "    for mine, trained in zip({copy}.buffers(), {model}.buffers()):\n"
        "        mine.copy_(trained)\n"
        "# 若平均的權重相差很遠：torch.optim.swa_utils.update_bn(train_loader, {copy})"
    ),
    "of the {total:.0f} parameters of {model}, {equal:.0f} are exactly equal in {copy}, which is "
    "evaluated, and {others:.0f} are not: {names}": (
        "{model} 的 {total:.0f} 個參數中，有 {equal:.0f} 個與受評估的 {copy} 完全相等，"
        "{others:.0f} 個不相等：{names}"
    ),
    "the weights of {copy}, which is evaluated, differ from those of {model} by {moved:.2g} of "
    "their size in the median (threshold {threshold:g}), and its running statistics are exactly "
    "those of {model}": (
        "受評估的 {copy} 的權重與 {model} 的相差其大小的 {moved:.2g}"
        "（中位數，門檻 {threshold:g}），"
        "而它的 running 統計量卻與 {model} 的完全相同"
    ),
    "Statistics of other weights are not those of an average.": (
        "別組權重的統計量不是平均之後的統計量。"
    ),
    "torch.optim.swa_utils.update_bn(train_loader, {copy})": (
        "torch.optim.swa_utils.update_bn(train_loader, {copy})"
    ),
    "modules of {copy}, which is evaluated with the parameters of {model}, are built with other "
    "numbers than those of {model}: {settings}": (
        "受評估的 {copy} 用的是 {model} 的參數，但它的模組建立時所用的數值與 {model} 的不同："
        "{settings}"
    ),
    "Equal parameters in other arithmetic are another model.": (
        "參數相同而算法不同，就是另一個模型。"
    ),
    "Build {copy} with the settings of {model}.": "以 {model} 的設定建立 {copy}。",
    "A part of the parameters was not taken over, or changed on the way.": (
        "有一部分參數沒有帶過去，或在途中變了。"
    ),
    "{copy}.load_state_dict({model}.state_dict(), strict=True)": (
        "{copy}.load_state_dict({model}.state_dict(), strict=True)"
    ),
    "the distance of the weights": "權重的距離",
    # E008 dropout-rate
    "A dropout layer drops nearly everything.": "某個 dropout 層幾乎把所有值都丟掉。",
    "`{layer}` drops each value with probability {rate:g} (threshold {threshold:g}) and multiplies "
    "what is left by {factor:.3g}": (
        "`{layer}` 以機率 {rate:g} 丟掉每個值（門檻 {threshold:g}），並把剩下的乘以 {factor:.3g}"
    ),
    "`p` is the probability of dropping, not of keeping.": "`p` 是丟掉的機率，不是保留的機率。",
    "nn.Dropout({keep:.3g})  # drops {keep:.0%}": "nn.Dropout({keep:.3g})  # 丟掉 {keep:.0%}",
    # E009 dropout-before-norm
    "BatchNorm behind dropout averages variances that evaluation does not have.": (
        "dropout 之後的 BatchNorm 所平均的變異數，評估時並不存在。"
    ),
    "the variance behind `{dropout}` is {ratio:.2f} times as large in training as in evaluation "
    "(threshold {threshold:g}), and `{norm}` averages that of training": (
        "`{dropout}` 之後的變異數在訓練時是評估時的 {ratio:.2f} 倍（門檻 {threshold:g}），"
        "而 `{norm}` 平均的是訓練時的"
    ),
    "Dropout keeps the mean and raises the variance, in training only.": (
        "dropout 只在訓練時保持平均而提高變異數。"
    ),
    "Move `{dropout}` behind the last BatchNorm.": "把 `{dropout}` 移到最後一個 BatchNorm 之後。",
    # E010 statistics-written-in-eval
    "In eval mode a layer still writes its running statistics, and normalizes by the batch.": (
        "在 eval 模式下，某層仍寫入 running 統計量，並以批次做正規化。"
    ),
    "{count} running statistics of {model} were written in forward passes in eval mode, first "
    "`{first}`": (
        "{model} 有 {count} 個 running 統計量在 eval 模式的前向傳播中被寫入，最先是 `{first}`"
    ),
    "A layer normalizes by the batch whatever its mode.": "某層不論模式都以批次做正規化。",
    "F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, "
    "training=self.training)": (
        "F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, "
        "training=self.training)"
    ),
}
