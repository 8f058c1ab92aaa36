"""What the page and its figures say."""

_FIGURES = {
    "Dashed: the fan-in rule, sqrt(fan-in x weight RMS^2 x mean square of what the layer was given "
    "+ bias RMS^2). It assumes weights that are independent of each other with mean 0, and that "
    "each layer was given what the module called before it returned: a function between them "
    "(F.relu, a skip connection) is not seen.": (
        "虛線：fan-in 法則，sqrt(fan-in × 權重 RMS² × 該層輸入的均方 + bias RMS²)。"
        "假設權重彼此獨立、平均為 0，且每一層收到的就是前一個被呼叫的模組所回傳的；"
        "中間的函式（F.relu、跳接）看不到。"
    ),
    "Dashed: how a bound on the gradient falls along the depth, 1/4 per sigmoid times the spectral "
    "norms of the weights, set at the last layer that has one. It bounds what arrives at a layer "
    "as a whole; a weight's own gradient also grows with the layer's input.": (
        "虛線：梯度上界沿深度的衰減，每個 sigmoid 乘 1/4，再乘各權重的譜範數，"
        "並在最後一個有上界的層對齊。它限制的是整體傳到該層的梯度；權重本身的梯度還會隨該層輸入變大。"
    ),
    "No prediction is drawn: there is no theory of this quantity here.": (
        "未畫預測：此處沒有關於這個量的理論。"
    ),
    "No prediction is drawn: the fan-in rule needs linear or convolution layers that follow a "
    "measured module, and the RMS of their weights.": (
        "未畫預測：fan-in 法則需要緊接在已量測模組之後的線性層或卷積層，以及其權重的 RMS。"
    ),
    "No prediction is drawn: the theory bounds only gradients behind sigmoids, along paths on "
    "which the gain of every operation is known.": (
        "未畫預測：理論只能限制位於 sigmoid 之後、且路徑上每個運算的增益都已知的梯度。"
    ),
    "layer, in network order": "層（依網路順序）",
    "fan-in rule": "fan-in 法則",
    "sigmoid bound": "sigmoid 上界",
    "Ring: where the finding stands.": "圓圈：診斷結果所在的層。",
    "{quantity} along the depth, {when}": "{quantity} 沿深度的變化，{when}",
    "Shaded: where the rule saw it.": "陰影：規則看到問題的步數範圍。",
    "Dashed: threshold {name} {value}.": "虛線：門檻 {name} {value}。",
    "threshold": "門檻",
    "step": "步",
    "measured step": "量測步",
    "exponent (power of 2)": "指數（2 的冪次）",
    "{measured} measured steps are drawn as {stretches} stretches, by the least and the greatest "
    "value of each.": "{measured} 個量測步以 {stretches} 段繪製，每段取最小值與最大值。",
    "Shows {shown} of {rows} rows, those with findings among them.": (
        "顯示 {rows} 列中的 {shown} 列，其中包含所有有診斷結果的列。"
    ),
    "NaN or infinite": "NaN 或無限大",
    "Of more than {most} events of one kind, evenly spaced ones.": (
        "同類事件超過 {most} 個時，只等距顯示其中一部分。"
    ),
    "evaluation": "評估",
    "skipped by AMP": "AMP 略過",
    "cadence": "量測頻率",
    "note": "備註",
    "origin": "起源",
    "evaluation: {forwards} forward passes": "評估：{forwards} 次前向傳播",
    "GradScaler skipped this step": "GradScaler 略過了這一步",
    "measured every {every} steps: {reason}": "每 {every} 步量測一次：{reason}",
    "first not finite at {site}: {what}": "最先出現非有限值之處為 {site}：{what}",
    "loss": "損失",
    "learning rate": "學習率",
    "channel": "通道",
    "running": "running",
    "batch": "批次",
    "mean": "平均值",
    "standard deviation": "標準差",
    "guide": "參考值",
    "threshold of N001": "N001 的門檻",
    "RMS of each step's change over the RMS of the parameter, of each layer's largest parameter, "
    "from the first layer (blue) to the last (yellow). Dashed: about 1e-3, a guide and no rule "
    "(CS231n, Neural Networks Part 3).": (
        "每一步變化量的 RMS 除以參數的 RMS，取每層最大的參數，由第一層（藍）到最後一層（黃）。"
        "虛線：約 1e-3，是參考而非規則（CS231n, Neural Networks Part 3）。"
    ),
    "Shows {shown} of {layers} layers, those with findings among them.": (
        "顯示 {layers} 層中的 {shown} 層，其中包含有診斷結果的層。"
    ),
    "batch against running statistics": "批次統計量對 running 統計量",
    "One mark a channel ({entries}). On the dashed line both agree.": (
        "每個標記為一個通道（{entries}）。落在虛線上表示兩者一致。"
    ),
}

_PAGE = {
    "First {name} at {where}": "首要：{name}，位於 {where}",
    "{name} at {where}": "{name}，位於 {where}",
    "{kind}, {tensors} tensors, lr {rates}": "{kind}，{tensors} 個張量，lr {rates}",
    "optimizer {name}": "最佳化器 {name}",
    "model": "模型",
    "models": "模型",
    "id": "識別碼",
    "exit code": "結束碼",
    "seconds": "秒數",
    "command": "命令",
    "cost": "成本",
    "run file": "執行記錄檔",
    "rules evaluated": "已評估的規則",
    "reported by": "報告產生者",
    "started": "開始時間",
    "loss of {models}": "{models} 的損失",
    "Plot": "圖",
    "Measured step": "量測步",
    "in {extent}": "共 {extent}",
    "rules not evaluated: {n}": "未評估的規則：{n}",
    "kinds of places not measured: {n}": "未量測的位置：{n} 類",
    "findings silenced: {n}": "被略過的診斷：{n}",
    "contexts: {n}": "情境：{n}",
    "Copy": "複製",
    "Copied": "已複製",
    "Why": "原因",
    "Fix": "修正",
    "Excluded": "已排除",
    "Seen": "出現於",
    "all {n} in the list": "在清單中顯示全部 {n} 層",
    "show in the list": "在清單中顯示",
    "Layers": "各層",
    "hide evidence": "收起證據",
    "show evidence": "展開證據",
    "Explains": "連帶解釋",
    "Findings": "診斷結果",
    "Cleared": "已解除",
    "Seen earlier, no longer at the end.": "先前出現，結束時已不存在。",
    "Rules that could not judge": "無法判斷的規則",
    "Places not measured": "未量測的位置",
    "Silenced findings": "被略過的診斷",
    "Judged under these circumstances": "在下列情境下判斷",
    "Notes": "備註",
    "What was not checked": "未檢查的部分",
    "no finding": "無診斷",
    "update ratio": "更新比例",
    "{n} of {all} layers": "{all} 層中的 {n} 層",
    "concerned by {code}": "與 {code} 有關",
    "show only these": "只顯示這些",
    "Highlighted: the layers that {code} concerns ({n})": "已標示：與 {code} 有關的層（{n}）",
    "clear": "清除",
    "name, class, finding": "名稱、類別、診斷",
    "health": "狀態",
    "class": "類別",
    "parameters": "參數",
    "{model} is compiled: its activations cannot be measured.": (
        "{model} 已編譯，無法量測其活化值。"
    ),
    "In network order. The last value measured, with its course on a logarithmic scale; gradient "
    "and update are those of the layer's largest parameter.": (
        "依網路順序排列。數字為最後一次量測值，旁為其走勢（對數尺度）；梯度與更新取該層最大的參數。"
    ),
    "Filter": "篩選",
    "close": "關閉",
    "previous": "上一層",
    "next": "下一層",
    "Course": "走勢",
    "on the steps of the loss": "與損失共用步軸",
    "Share of the non-zero elements of a sample in each power of two. Dashed: the limits of "
    "float16; below 2^-24 it is zero. bfloat16 and float32 reach down to 2^-126, off this scale.": (
        "抽樣中非零元素落在每個 2 的冪次的比例。虛線：float16 的界限，低於 2^-24 即為零。"
        "bfloat16 與 float32 可小至 2^-126，超出此圖範圍。"
    ),
    "Ranges and fractions": "範圍與比例",
    "Nothing was measured of this layer.": "此層沒有任何量測。",
    "Course of training": "訓練過程",
    "Quantity": "量",
    "Layers over steps": "各層隨步數變化",
    "Along the depth": "沿深度變化",
    "Each layer's value at one measured step, beside the first measured step (dotted).": (
        "各層在某個量測步的值；點線為第一個量測步。"
    ),
    "Update ratios": "更新比例",
    "Light": "淺色",
    "Dark": "深色",
    "Change the theme": "切換主題",
    "Sections": "章節",
    "Run": "執行資訊",
    "This report draws itself with JavaScript, which is switched off here.": (
        "本報告以 JavaScript 繪製，但此處已停用。"
    ),
}

_ERRORS = {
    "There is nothing to draw: {why}.": "沒有可畫的內容：{why}。",
    "the run has no loss, learning rate or logged value of two steps": (
        "此次執行沒有兩步以上的損失、學習率或記錄值"
    ),
    "`{quantity}` was not measured": "`{quantity}` 沒有量測",
    "`{quantity}` was not measured at `{place}`": "`{quantity}` 在 `{place}` 沒有量測",
    "nothing was measured at `{place}`": "`{place}` 沒有任何量測",
    "no update ratio was measured": "沒有量測更新比例",
    "`{quantity}` was not measured at two layers or more of one model.": (
        "`{quantity}` 沒有在同一模型的兩層以上量測。"
    ),
    "`{quantity}` was not measured at `{place}`.": "`{quantity}` 在 `{place}` 沒有量測。",
    "No statistics of channels were measured at `{place}`; they were at {known}.": (
        "`{place}` 沒有量測各通道的統計量；有量測的是 {known}。"
    ),
    "No statistics of channels were measured in this run.": "此次執行沒有量測各通道的統計量。",
    "`{quantity}` was not measured in this run.": "此次執行沒有量測 `{quantity}`。",
    "`{quantity}` has several numbers a step: use `plot_exponents` or `plot_norm`.": (
        "`{quantity}` 每一步有多個數值：請用 `plot_exponents` 或 `plot_norm`。"
    ),
    "There are no exponents `{quantity}`.": "沒有指數分布 `{quantity}`。",
    "There is no module or parameter `{place}`.": "沒有名為 `{place}` 的模組或參數。",
    "{problem} Did you mean `{near}`?": "{problem}您是指 `{near}` 嗎？",
    "Step {step} was not measured there; the nearest that was is {nearest}.": (
        "該處第 {step} 步沒有量測；最接近的量測步是 {nearest}。"
    ),
}

MESSAGES: dict[str, str] = _FIGURES | _PAGE | _ERRORS
