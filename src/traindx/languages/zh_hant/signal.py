"""`traindx signal`: how a signal and a gradient travel through a model."""

MESSAGES: dict[str, str] = {
    # traindx.signal
    "An activation is named like its torch module; got {name}. Try {near}.": (
        "激活函數以其 torch 模組命名；得到 {name}。試試 {near}。"
    ),
    "{name} takes the options {taken}; got {given}.": "{name} 的選項為 {taken}；得到 {given}。",
    "GELU's `approximate` is 'none' or 'tanh'; got {given}.": (
        "GELU 的 `approximate` 為 'none' 或 'tanh'；得到 {given}。"
    ),
    "A Gaussian needs a finite mean and a finite variance of at least 0; got {mean} and "
    "{variance}.": "高斯分布需要有限的平均值和不小於 0 的有限變異數；得到 {mean} 和 {variance}。",
    "A variance is a finite number of at least 0; got {number}.": (
        "變異數是不小於 0 的有限數；得到 {number}。"
    ),
    "A slope is taken at a variance over 0; got {q}.": "斜率須取在大於 0 的變異數處；得到 {q}。",
    "No gain keeps a variance of {variance}: {name} makes 0 of it.": (
        "沒有增益能保持變異數 {variance}：{name} 使它變為 0。"
    ),
    "The variance to keep is a finite number over 0; got {variance}.": (
        "要保持的變異數是大於 0 的有限數；得到 {variance}。"
    ),
    "its input is not finite": "其輸入不是有限數",
    "it adds signals that may depend on each other": "它把可能彼此相依的訊號相加",
    # traindx.trial
    "The model is compiled into TorchScript, which lets nobody see into its layers. Give the "
    "Python model that it was made from.": (
        "模型已編譯成 TorchScript，無法看到其各層。請給它所來自的 Python 模型。"
    ),
    "The loader fails: {error}.": "loader 失敗：{error}。",
    "The model cannot be copied: {error}.": "模型無法複製：{error}。",
    "`{name}` is lazy: its shape is not known before the first batch. Call the model on a batch "
    "where it is made.": (
        "`{name}` 是延遲初始化的：第一個批次之前不知其形狀。請在建立模型處先以一個批次呼叫它。"
    ),
    "`{name}` lies on the device meta and has no values. Make the model on a real device.": (
        "`{name}` 位於 meta 裝置上，沒有數值。請在實際的裝置上建立模型。"
    ),
    # traindx.preflight
    "theory has no formula for {kind}": "理論對 {kind} 沒有公式",
    "PReLU has a slope for each channel": "PReLU 每個通道各有斜率",
    "its border is not padded with zeros": "其邊界不是以零填補",
    "in evaluation it maps by its running statistics": "在評估模式下它以 running 統計量映射",
    "it normalizes each channel over space, and neighbours are alike": (
        "它對每個通道在空間上正規化，而相鄰的值彼此相似"
    ),
    "its input takes no gradient": "其輸入不接受梯度",
    "something is added to its input that takes no gradient": "有不接受梯度的量加到其輸入上",
    "No layer of the model makes real numbers of this batch. Give it more samples.": (
        "模型沒有任何層由這個批次算出實數。請給更多樣本。"
    ),
    "The gradient cannot flow back through the model: {error}. It needs to work with "
    "`torch.autograd.grad`.": (
        "梯度無法反向通過模型：{error}。模型須能與 `torch.autograd.grad` 一起運作。"
    ),
    "The loader gives no batch.": "loader 沒有給出任何批次。",
    "A batch of shape {text} has {count:.2g} numbers; {most:.2g} are the most that are made. Give "
    "fewer samples.": (
        "形狀為 {text} 的批次有 {count:.2g} 個數；最多產生 {most:.2g} 個。請減少樣本。"
    ),
    "too many functions lie between it and the layer before": "它與前一層之間的函數太多",
    "its input comes out of a function, {name}": "其輸入來自函數 {name}",
    "its input is not made of real numbers": "其輸入不是實數",
    "The model fails on its batch: {error}. Give it the batch it is made for.": (
        "模型在這個批次上失敗：{error}。請給它適合的批次。"
    ),
    "The model's output takes no gradient. It needs to return a tensor of real numbers that "
    "depends on its parameters.": "模型的輸出不接受梯度。它須回傳一個取決於其參數的實數張量。",
    "A target is `package.module:name` or `file.py:name`; got {target}. The name is a model, or a "
    "function that returns one.": (
        "目標為 `package.module:name` 或 `file.py:name`；得到 {target}。"
        "名稱是一個模型，或回傳模型的函數。"
    ),
    " Did you mean {near}?": "您是否指 {near}？",
    "`{place}` has no `{name}`.{hint}": "`{place}` 沒有 `{name}`。{hint}",
    "A shape is whole numbers from 1 on, as `64x1x28x28`; got {text}.": (
        "形狀是由 1 起的整數，例如 `64x1x28x28`；得到 {text}。"
    ),
    "`{name}` gives a model without a batch. Give the batch's shape, as `--shape 64x784`, or name "
    "a function with `return model, batch`.": (
        "`{name}` 給出沒有批次的模型。請給批次的形狀，例如 `--shape 64x784`，"
        "或指定一個 `return model, batch` 的函數。"
    ),
    "`{target}` gives a `{kind}`. It needs to be a `torch.nn.Module`, or a function that returns "
    "one, or one and its batch: `return model, batch`.": (
        "`{target}` 給出 `{kind}`。它須是 `torch.nn.Module`，或回傳模型的函數，"
        "或同時回傳模型與批次：`return model, batch`。"
    ),
    "`{target}` failed: {error}{where}. It is called without arguments.": (
        "`{target}` 失敗：{error}{where}。它會在沒有引數的情況下被呼叫。"
    ),
    "`{place}` cannot be imported: {error}{where}.": "無法匯入 `{place}`：{error}{where}。",
    "There is no file `{file}`.": "沒有檔案 `{file}`。",
    # traindx.report.propagation
    "{n} layer with weights": "{n} 個帶權重的層",
    "{n} layers with weights": "{n} 個帶權重的層",
    "a batch of {n} sample": "批次大小 {n}",
    "a batch of {n} samples": "批次大小 {n}",
    "{target}: {parts}": "{target}：{parts}",
    "in training": "訓練模式",
    "in evaluation": "評估模式",
    "partly in training": "部分為訓練模式",
    "theory": "理論",
    "share": "占比",
    "gradient": "梯度",
    "gain": "增益",
    "right": "應為",
    "what this says": "這說明什麼",
    "not predicted": "未預測",
    "the gradient at the first layer is {measured} times that at the last; theory says {theory}": (
        "第一層的梯度是最後一層的 {measured} 倍；理論為 {theory}"
    ),
    "the gradient at the first layer is {measured} times that at the last": (
        "第一層的梯度是最後一層的 {measured} 倍"
    ),
    "with the right gains it would be {mended} times": "以正確的增益則為 {mended} 倍",
    "of what leaves {layer}, {share} depends on the sample: the rest is the same for every input": (
        "離開 {layer} 的訊號中，取決於樣本的占 {share}：其餘對每個輸入都相同"
    ),
    "no change of the input can change the output by more than {bound} times as much: the product "
    "of the spectral norms and the steepest slopes": (
        "輸入的任何改變對輸出的影響不會超過 {bound} 倍：即各譜範數與最陡斜率的乘積"
    ),
    "{name}: the gain {gain} keeps a mean square of {variance}, but not firmly: a deviation grows "
    "{slope} times in each layer": (
        "{name}：增益 {gain} 保持均方 {variance}，但並不穩固：偏差每層放大 {slope} 倍"
    ),
    "{name}: with the gain {gain}, a gradient's mean square is multiplied by {chi} in each layer": (
        "{name}：以增益 {gain}，梯度的均方每層乘以 {chi}"
    ),
    "for a mean square of {variance} behind each layer, multiply the weights of {each}": (
        "要使每層之後的均方為 {variance}，請將權重相乘：{each}"
    ),
    "{layer} by {factor}": "{layer} 乘以 {factor}",
    "{some}, and {n} more": "{some}，另有 {n} 個",
    "share: the part of the mean square that depends on the sample; gain: RMS of a weight times "
    "the root of its fan-in; gradient: RMS, of a random direction at the output": (
        "占比：均方中取決於樣本的部分；增益：權重的 RMS 乘以其 fan-in 的平方根；"
        "梯度：輸出處一個隨機方向的梯度的 RMS"
    ),
    "{layer}: {reason}; theory goes on from its output as measured": (
        "{layer}：{reason}；理論由量測到的輸出繼續"
    ),
    "{layer}: theory takes its weights as independent of its input, and they are those of "
    "{other}": "{layer}：理論假設其權重與輸入無關，但它們就是 {other} 的權重",
    "{layer}: theory takes what it does to a mean square from the measured one": (
        "{layer}：它對均方的作用取自量測值"
    ),
    "{layer}: {reason}": "{layer}：{reason}",
    "{layer}: theory starts from the input as measured, as {reason}": (
        "{layer}：理論從量測到的輸入開始，因為{reason}"
    ),
    "no gradient arrived at {layers}": "沒有梯度到達 {layers}",
}
