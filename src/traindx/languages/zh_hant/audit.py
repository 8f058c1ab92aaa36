"""`traindx norm audit`: its checks, what it reads them from, and its report."""

MESSAGES: dict[str, str] = {
    # what is not checked
    "a checkpoint does not tell; name the model, as `file.py:name`": (
        "檢查點看不出來；請指名模型，例如 `file.py:name`"
    ),
    "there is no batch; give one, or its `--shape`": "沒有批次；請給一個，或給其 `--shape`",
    "there is no batch of the model's data; `return model, batch`": (
        "沒有模型資料的批次；請 `return model, batch`"
    ),
    "the batch is noise, not of the model's data": "批次是雜訊，不是模型的資料",
    "no layer has running statistics": "沒有任何層保有 running 統計量",
    "The model's output on the batch is not finite.": "模型在該批次上的輸出含非有限值。",
    "The model gives other outputs each time it is evaluated.": "模型每次評估的輸出都不同。",
    "The model is lazy and has no shapes yet. Call it on a batch before it is given.": (
        "模型是 lazy 的，尚無形狀。請先以一個批次呼叫它再交出。"
    ),
    # statistics
    "{bad} of {channels} channels have statistics that are not finite": (
        "{channels} 個通道中有 {bad} 個的統計量含非有限值"
    ),
    "Find the batch that was not finite, then `{command}`.": (
        "請找出含非有限值的批次，然後執行 `{command}`。"
    ),
    "{bad} of {channels} running variances are negative, down to {least:.3g}": (
        "{channels} 個 running 變異數中有 {bad} 個為負，最小 {least:.3g}"
    ),
    "Keep buffers out of whatever changed them, then recalibrate: `{command}`.": (
        "請別讓任何東西更動緩衝區，然後重新校準：`{command}`。"
    ),
    "{zero} of {channels} running variances are 0": (
        "{channels} 個 running 變異數中有 {zero} 個為 0"
    ),
    "Look why these channels are constant: dead units before, or masked inputs.": (
        "請查明這些通道為何恆定：之前有死亡單元，或輸入被遮罩。"
    ),
    "{batches} batches were counted, but the statistics are still 0 and 1": (
        "計了 {batches} 個批次，但統計量仍是 0 與 1"
    ),
    "the statistics are still 0 and 1: no batch has come": ("統計量仍是 0 與 1：沒有任何批次經過"),
    "Its momentum is 0, or they were reset: `norm.momentum = 0.1`, then `{command}`.": (
        "其 momentum 為 0，或統計量被重設過：請設 `norm.momentum = 0.1`，再執行 `{command}`。"
    ),
    "Call it in training mode, or recalibrate: `{command}`.": (
        "請在訓練模式下呼叫它，或重新校準：`{command}`。"
    ),
    "its statistics are used, but it counts no batch": "其統計量已被使用，但批次計數為 0",
    "Before training on with `momentum=None`, set it: `norm.num_batches_tracked.fill_(steps)`.": (
        "以 `momentum=None` 繼續訓練前請先設定它：`norm.num_batches_tracked.fill_(steps)`。"
    ),
    "the {n} steps": "那 {n} 步",
    "its siblings": "其他層",
    "it has counted {batches} batches, {times:.3g} times as many as {whom}": (
        "它計了 {batches} 個批次，是{whom}的 {times:.3g} 倍"
    ),
    "Look how often it is called, and where it is frozen or in eval mode; `--steps` are "
    "micro-batches.": (
        "請查看它多常被呼叫，以及在何處被凍結或處於評估模式；`--steps` 指的是微批次。"
    ),
    # precision
    "its statistics are kept in {dtype}: they stall up to {stall:.2g} off, relative to their "
    "size": "其統計量以 {dtype} 保存：它們會停滯，相對於自身大小最多偏離 {stall:.2g}",
    "Keep normalization in float32: `norm.float()`, or autocast instead of `.half()`.": (
        "請讓正規化維持 float32：`norm.float()`，或以 autocast 代替 `.half()`。"
    ),
    "its weight is kept in float16": "其權重以 float16 保存",
    "Keep normalization in float32: `norm.float()`.": "請讓正規化維持 float32：`norm.float()`。",
    "{small} of {channels} running variances are under eps {eps:g}: their output has a standard "
    "deviation of {out:.2g} instead of 1": (
        "{channels} 個 running 變異數中有 {small} 個小於 eps {eps:g}："
        "其輸出的標準差是 {out:.2g} 而不是 1"
    ),
    "Scale the input up, or lower eps; keep eps when porting.": (
        "請放大輸入或降低 eps；移植時請保留 eps。"
    ),
    # settings
    "momentum {momentum:g} averages the last {batches:.2g} batches": (
        "momentum {momentum:g} 只平均最後 {batches:.2g} 個批次"
    ),
    "If it came from Keras or Flax, use 1 - momentum: `norm.momentum = {right:.3g}`.": (
        "若它來自 Keras 或 Flax，請用 1 - momentum：`norm.momentum = {right:.3g}`。"
    ),
    "Use `norm.momentum = 0.1`: from 1 on, nothing is averaged.": (
        "請用 `norm.momentum = 0.1`：從 1 起就不再平均任何東西。"
    ),
    "after {batches} batches at momentum {momentum:g}, {weight:.0%} of the statistics are the "
    "initial 0 and 1": (
        "以 momentum {momentum:g} 經過 {batches} 個批次後，統計量有 {weight:.0%} 仍是初始的 0 與 1"
    ),
    "Recalibrate: `{command}`; or train "
    "with `momentum=0.1`.": "請重新校準：`{command}`；或以 `momentum=0.1` 訓練。",
    "momentum None means 0 here: its running statistics never move": (
        "momentum None 在此等於 0：其 running 統計量永不更新"
    ),
    "Give it a number: `norm.momentum = 0.1`.": "請給它一個數值：`norm.momentum = 0.1`。",
    "its parameters are frozen, its running statistics are not": (
        "其參數已凍結，running 統計量卻沒有"
    ),
    "After every `model.train()` set it to evaluation: `norm.eval()`.": (
        "每次 `model.train()` 之後請將它設為評估模式：`norm.eval()`。"
    ),
    # on a batch
    "the bias of {layer} does nothing": "{layer} 的 bias 毫無作用",
    "Make that layer with `bias=False`.": "請以 `bias=False` 建立該層。",
    "its input lies channels last, and its mean is {offset:.3g} times its standard deviation: the "
    "variance cancels, and values are {error:.2g} off": (
        "其輸入以 channels last 排列，平均是標準差的 {offset:.3g} 倍："
        "變異數相消，數值偏離 {error:.2g}"
    ),
    "Call it on `x.contiguous()`, or use `traindx.norm.modules.GroupNorm`.": (
        "請以 `x.contiguous()` 呼叫它，或改用 `traindx.norm.modules.GroupNorm`。"
    ),
    "each of its statistics is of a single element: nothing of the input is left": (
        "其每個統計量都只來自單一元素：輸入完全沒有留下"
    ),
    "Use fewer groups, normalize more axes, or leave it out here.": (
        "請用較少的群組、對更多軸正規化，或在此處省去它。"
    ),
    "on the batch, evaluation is not finite": "在該批次上，評估結果含非有限值",
    "on the batch, evaluation is {gap:.3g} standard deviations off": (
        "在該批次上，評估偏離 {gap:.3g} 個標準差"
    ),
    "on the batch, evaluation is {gap:.3g} standard deviations off, and makes {share:.0%} of the "
    "change of the model's output": (
        "在該批次上，評估偏離 {gap:.3g} 個標準差，占模型輸出變化的 {share:.0%}"
    ),
    "Recalibrate: `{command}`.": ("請重新校準：`{command}`。"),
    # spectral normalization
    "its vectors have length {length:.4g} instead of 1, so its weight is {times:.3g} times "
    "what it should be": "其向量長度為 {length:.4g} 而不是 1，因此權重是應有的 {times:.3g} 倍",
    "Leave u and v out of the average: copy them from the trained model.": (
        "請勿將 u 與 v 納入平均：從訓練中的模型複製它們。"
    ),
    "its power iteration has not come to the greatest singular value: the weight is {times:.3g} "
    "times what it should be": "其冪迭代尚未達到最大奇異值：權重是應有的 {times:.3g} 倍",
    "In training mode call the model some times without a gradient, or use "
    "`n_power_iterations=3`.": (
        "請在訓練模式下不求梯度地呼叫模型數次，或使用 `n_power_iterations=3`。"
    ),
    "its weight or its vectors are not finite": "其權重或向量含非有限值",
    "Load an earlier checkpoint, and find the step that was not finite.": (
        "請載入較早的檢查點，並找出開始非有限的那一步。"
    ),
    # malformed layers
    "Load the checkpoint into its model and save it again, or find who wrote it.": (
        "請將檢查點載入其模型後重新儲存，或查明是誰寫的。"
    ),
    "it has only one of running mean and running variance": "running 平均與 running 變異數只有其一",
    "it has no shape yet: it is lazy, and no batch has come": (
        "它尚無形狀：它是 lazy 的，還沒有批次經過"
    ),
    "its running mean has shape {mean} and its running variance {var}": (
        "其 running 平均的形狀是 {mean}，running 變異數是 {var}"
    ),
    "its running mean has shape {mean} and its {leaf} {other}": (
        "其 running 平均的形狀是 {mean}，{leaf} 是 {other}"
    ),
    "its counter of batches is no single number": "其批次計數不是單一數值",
    "its numbers are complex": "其數值為複數",
    "it claims {claimed:,} numbers where {held:,} are stored": (
        "它聲稱有 {claimed:,} 個數值，實際只存了 {held:,} 個"
    ),
    "its numbers cannot be read ({error})": "其數值無法讀取（{error}）",
    "its spectral vectors do not fit its weight": "其譜向量與權重不相符",
    # the report
    "{n} normalization layer": "{n} 個正規化層",
    "{n} normalization layers": "{n} 個正規化層",
    "{name}: {layers}, {counts}": "{name}：{layers}，{counts}",
    "{name}: {layers}, nothing found": "{name}：{layers}，未發現問題",
    "{n} hint": "{n} 個提示",
    "{n} hints": "{n} 個提示",
    "the model": "模型",
    "{n} checks looked": "已做 {n} 項檢查",
    "checked": "已檢查",
    "not checked": "未檢查",
    "evaluation against the batch": "評估與該批次之比較",
    "gap": "差距",
    "share of the change": "占變化之比例",
    "and {n} more with smaller gaps": "另有 {n} 個差距較小",
    "from running to batch statistics the output changes by {change:.3g} of its size; {rest:.0%} "
    "of that is interaction: what layers do together, beyond each alone": (
        "從 running 統計量換成批次統計量，輸出變化為其大小的 {change:.3g} 倍；"
        "其中 {rest:.0%} 是交互作用：各層共同造成、超出各自單獨所為的部分"
    ),
    "the output's change was not attributed: {reason}": "輸出的變化未能歸因：{reason}",
}
"""Traditional Chinese, as it is written in Taiwan."""
