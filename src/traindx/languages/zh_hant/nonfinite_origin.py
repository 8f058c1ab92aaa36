"""F006 nonfinite-origin."""

MESSAGES: dict[str, str] = {
    "a step that a GradScaler skipped": "GradScaler 略過的步",
    "masks of minus infinity": "以負無限大作為遮罩",
    "what came after it in the same batch": "同一批次中在它之後的運算",
    "everything measured before it: it is finite": "在它之前測得的一切：都是有限值",
    "an earlier step: every loss before it is finite": "更早的步：之前每一步的損失都是有限值",
    "the batch of step {step} holds {count:g} values that are not finite, the first at index "
    "{index}": "第 {step} 步的批次含有 {count:g} 個非有限值，第一個位於索引 {index}",
    "the batch of step {step} holds {count:g} values that are not finite": (
        "第 {step} 步的批次含有 {count:g} 個非有限值"
    ),
    "`{operation}` of `{place}` was not finite before the forward of step {step}, though every "
    "gradient before it was: the update made it so": (
        "`{place}` 的 `{operation}` 在第 {step} 步前向傳播之前就已含非有限值，"
        "而先前每個梯度都是有限值：是更新步驟造成的"
    ),
    "at step {step} every output is finite, and `{operation}` in the loss function is not{given}": (
        "第 {step} 步的每個輸出都是有限值，但損失函數中的 `{operation}` 不是{given}"
    ),
    "the loss function": "損失函數",
    "`{name}`": "`{name}`",
    "at step {step} the loss is finite, and the gradient of `{operation}` in {where} is the first "
    "that is not, at index {found}": (
        "第 {step} 步的損失是有限值，而 {where} 中 `{operation}` 的梯度最先出現非有限值，"
        "位於索引 {found}"
    ),
    "at step {step} `{operation}` in `{place}` makes the first value that is not finite, at index "
    "{found}": ("第 {step} 步時，`{place}` 中的 `{operation}` 最先產生非有限值，位於索引 {found}"),
    "{before}, from values between {low:.3g} and {high:.3g}": (
        "{before}，輸入值介於 {low:.3g} 與 {high:.3g} 之間"
    ),
    "{before}, from values between {low:.3g} and {high:.3g} and others between {least:.3g} and "
    "{most:.3g}": (
        "{before}，輸入值介於 {low:.3g} 與 {high:.3g} 之間，"
        "另一組介於 {least:.3g} 與 {most:.3g} 之間"
    ),
    "at step {step} the output of `{name}` is the first that is not finite ({count:g} values), and "
    "what it was given is finite": (
        "第 {step} 步時，`{name}` 的輸出最先出現非有限值（{count:g} 個），而它的輸入是有限值"
    ),
    "at step {step} the first output that is not finite is that of `{before}` ({count:g} values): "
    "it was born in `{before}` or in what `{name}` does ahead of it{after}": (
        "第 {step} 步時，最先出現非有限值的輸出是 `{before}` 的（{count:g} 個）："
        "產生處在 `{before}`，或在 `{name}` 於它之前所做的運算{after}"
    ),
    ", after `{after}`": "，在 `{after}` 之後",
    "at step {step} every measured output of `{name}` is finite, and the loss is {value}: it was "
    "born in the loss function": (
        "第 {step} 步時，`{name}` 所有測得的輸出都是有限值，損失卻是 {value}：產生處在損失函數"
    ),
    "at step {step} the loss is finite, and its gradient with respect to the output of `{before}` "
    "is not: it was born in the backward of the loss function": (
        "第 {step} 步的損失是有限值，但它對 `{before}` 輸出的梯度不是：產生處在損失函數的反向傳播"
    ),
    "at step {step} the gradient of `{before}` is not finite ({count:g} values), though the one "
    "that arrives at the output of `{name}` is": (
        "第 {step} 步時，`{before}` 的梯度含非有限值（{count:g} 個），"
        "而抵達 `{name}` 輸出的梯度是有限值"
    ),
    "at step {step} the gradient is finite at the output of `{after}` and not at that of "
    "`{before}`: it was born in the backward between the two": (
        "第 {step} 步時，`{after}` 輸出處的梯度是有限值，`{before}` 輸出處的則不是："
        "產生處在兩者之間的反向傳播"
    ),
    "The replay of the batch did not show it: {reason}.": "重播該批次沒有顯示出來源：{reason}。",
    "A replay was made of step {step}, which was later.": "重播的是較晚的第 {step} 步。",
    "Where it was born is not known: too little of that step, or of the one before it, was "
    "measured.": "產生處不明：該步或其前一步的量測不足。",
    "the loss is {value} at step {step}, and finite again later": (
        "損失在第 {step} 步為 {value}，之後又恢復為有限值"
    ),
    "the loss is {value} from step {step} on": "損失從第 {step} 步起為 {value}",
    "a parameter is already not finite at step {step}": "第 {step} 步時已有參數含非有限值",
    "a gradient is not finite at step {step}": "第 {step} 步時有梯度含非有限值",
    "# replays the first batch that is not finite and names the operation\n"
    "traindx run --trap-nan SCRIPT  # in a notebook: traindx.watch(model, trap_nan=True)": (
        "# 重播第一個出現非有限值的批次，並指出是哪個運算\n"
        "traindx run --trap-nan SCRIPT  # 在 notebook 中：traindx.watch(model, trap_nan=True)"
    ),
    # Causes.
    "The data holds NaN or infinity: a failed reading, or a division by zero.": (
        "資料含有 NaN 或無限大：可能是讀取失敗，或除以零。"
    ),
    "The step was too large for the number format, or divided by zero.": (
        "更新量超出數值格式的範圍，或除以零。"
    ),
    "An operation there left the range of its definition or of its format.": (
        "該處有運算超出了定義域或數值格式的範圍。"
    ),
    "The logarithm of 0 is -inf, and that of a negative number is NaN.": (
        "0 的對數是 -inf，負數的對數是 NaN。"
    ),
    "The root of a negative number is NaN, and 1/sqrt(0) is infinite.": (
        "負數的平方根是 NaN，而 1/sqrt(0) 是無限大。"
    ),
    "Something is divided by 0, or by a number close to it.": "除數為 0 或接近 0。",
    "The exponential overflows: in float32 above 88.7, in float16 above 11.": (
        "指數函數溢位：float32 在輸入大於 88.7 時、float16 在大於 11 時。"
    ),
    "A row of the softmax has nothing but -inf: every position is masked.": (
        "softmax 有一列全是 -inf：每個位置都被遮罩了。"
    ),
    "Every target of the batch is ignored: the mean over none of them is 0/0.": (
        "整個批次的目標都被忽略：對零個元素取平均等於 0/0。"
    ),
    "The result is outside the range of its number format, or undefined.": (
        "結果超出數值格式的範圍，或沒有定義。"
    ),
    "The derivative of a root or a norm at 0 is infinite, and 0 times it NaN.": (
        "平方根或範數在 0 處的導數是無限大，再乘以 0 就成為 NaN。"
    ),
    "The derivative of the logarithm at 0 is infinite, and 0 times it NaN.": (
        "對數在 0 處的導數是無限大，再乘以 0 就成為 NaN。"
    ),
    "The derivative of a quotient divides by the square of a number close to 0.": (
        "商的導數要除以一個接近 0 的數的平方。"
    ),
    "The derivative is infinite or undefined there, though the value is not.": (
        "該處的值雖是有限的，導數卻是無限大或沒有定義。"
    ),
    # Fixes.
    "# before training\n"
    "assert torch.isfinite(inputs).all(), (~torch.isfinite(inputs)).nonzero()[:5]": (
        "# 訓練之前\nassert torch.isfinite(inputs).all(), (~torch.isfinite(inputs)).nonzero()[:5]"
    ),
    "# before optimizer.step(), and a lower lr\n"
    "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)": (
        "# 在 optimizer.step() 之前，並降低 lr\n"
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    ),
    "torch.log(x.clamp_min(1e-8))  # or log_softmax, logsigmoid, log1p, where they fit": (
        "torch.log(x.clamp_min(1e-8))  # 或視情況改用 log_softmax、logsigmoid、log1p"
    ),
    "torch.sqrt(x.clamp_min(0) + 1e-12)  # a norm: (x * x).sum(-1) inside": (
        "torch.sqrt(x.clamp_min(0) + 1e-12)  # 範數：括號內為 (x * x).sum(-1)"
    ),
    "x / y.clamp_min(1e-8)  # for y >= 0": "x / y.clamp_min(1e-8)  # 適用於 y >= 0",
    "torch.exp(x.clamp_max(80))  # or subtract the maximum first": (
        "torch.exp(x.clamp_max(80))  # 或先減去最大值"
    ),
    "mask[mask.all(-1)] = False  # leave each row at least one position": (
        "mask[mask.all(-1)] = False  # 每一列至少留一個位置"
    ),
    "if (targets != -100).any():  # only then\n    loss.backward()": (
        "if (targets != -100).any():  # 僅在此時\n    loss.backward()"
    ),
    "Bound what goes in (`clamp`), or compute in float32; lower the learning rate if the inputs "
    "have grown.": "限制輸入範圍（`clamp`），或改以 float32 計算；若輸入已變大，請降低學習率。",
    # Why a replay has not shown it.
    "its input holds itself": "其輸入包含自己本身",
    "its parameters have changed since": "其參數在呼叫之後已改變",
    "its input was changed in place after the call": "其輸入在呼叫之後被就地（in-place）修改",
    "the call cannot be replayed: {why}": "無法重播該次呼叫：{why}",
    "the replay failed: {name}: {error}": "重播失敗：{name}: {error}",
    "of a distributed training, one rank cannot replay alone": "分散式訓練無法由單一 rank 獨自重播",
    "no call of a model was seen before it": "在此之前沒有看到任何模型的呼叫",
    "every output was finite, and the loss made by no operation": (
        "所有輸出都是有限值，而損失並非由任何運算產生"
    ),
    "the replay of the batch gave finite gradients": "重播該批次得到的梯度都是有限值",
    "the replay of the batch gave finite outputs": "重播該批次得到的輸出都是有限值",
    "torch.compile is used, and a replay cannot look inside": (
        "使用了 torch.compile，重播無法看進其內部"
    ),
}
