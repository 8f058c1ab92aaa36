"""`traindx norm convert`: what is carried, what is refused, the files, and the proof."""

MESSAGES: dict[str, str] = {
    # the page
    "{source}: {layers} from {a} to {b}, {refused} refused": (
        "{source}：{layers}從 {a} 到 {b}，拒絕 {refused} 層"
    ),
    "refused, so nothing is written": "被拒絕，因此未寫入任何檔案",
    "in your program": "在你的程式中",
    "for {layers}": "用於 {layers}",
    "{layers}: {note}": "{layers}：{note}",
    "{option} is the default of {framework}, since the file does not tell: {layers}; if it is "
    "another, name it with `--layer`": (
        "{option} 是 {framework} 的預設值，因為檔案沒有說明：{layers}；"
        "若非如此，請以 `--layer` 指定"
    ),
    "left out: {layers}": "略過：{layers}",
    "{n} arrays of other layers stay behind": "其他層的 {n} 個陣列留在原處",
    "{by}, {layers}: greatest difference {difference}, {share} of what rounding allows": (
        "{by}，{layers}：最大差異 {difference}，為捨入所容許的 {share}"
    ),
    "by our formulas in float64, from the file as it was written": (
        "以我們的公式在 float64 中計算，讀自寫出的檔案"
    ),
    "a training step of both, by our formulas": "以我們的公式計算兩者的一個訓練步",
    "by {frameworks} themselves, in float32": "由 {frameworks} 自行在 float32 中計算",
    "{framework} could not be asked ({why})": "無法詢問 {framework}（{why}）",
    # notes
    "evaluation is the same; in training {other} variances are averaged now, which are "
    "var / (n - 1) {way} for n elements of a channel, times momentum {momentum:g} at each step": (
        "評估相同；訓練時改為平均 {other} 變異數，每通道 n 個元素時{way} var / (n - 1)，"
        "每步再乘以 momentum {momentum:g}"
    ),
    "greater": "大",
    "smaller": "小",
    "its eps is that of the type computed in; {eps:.4g} is written for it": (
        "其 eps 為計算型別的 eps；寫為 {eps:.4g}"
    ),
    "{shift:g} was added to its weight, which acted so": (
        "其權重加上了 {shift:g}，因為它原本如此作用"
    ),
    "a {role} of {value:g} was added, since torch has both or none: freeze it, if it is to stay "
    "so": ("加上了值為 {value:g} 的 {role}，因為 torch 兩者皆有或皆無：若要維持，請將其凍結"),
    "its kernel was divided by its singular value, as Keras keeps it: how large it was before is "
    "lost, which evaluation does not need": (
        "其 kernel 已除以奇異值，如 Keras 所保存：先前的大小會遺失，評估並不需要"
    ),
    "its counter of batches is left out: the source has none": "略去其批次計數器：來源沒有",
    # refusals
    "its {role} holds whole numbers: it is no normalization": "其 {role} 為整數：它不是正規化",
    "{target} has no {kind}: write it from its parts, or leave it out": (
        "{target} 沒有 {kind}：請以其組成部分撰寫，或略過"
    ),
    "it keeps running statistics, which an InstanceNorm does in torch alone; for evaluation only, "
    "name it a BatchNorm: `--layer '{name}=torch.BatchNorm2d'`": (
        "它保有 running 統計量，只有 torch 的 InstanceNorm 如此；若只供評估，"
        "請稱它為 BatchNorm：`--layer '{name}=torch.BatchNorm2d'`"
    ),
    "its window of even size has a neighbour more before the element; in {target} it would be "
    "after it, so the outputs are others. Train with an odd size": (
        "其偶數大小的視窗在元素之前多一個鄰居；在 {target} 中會在之後，因此輸出不同。"
        "請以奇數大小訓練"
    ),
    "its groups take every so many channels, and those of {target} neighbours: reorder the "
    "channels of the model first": (
        "其群組每隔若干通道取一，而 {target} 取相鄰者：請先重新排列模型的通道"
    ),
    "its weight has a value a group, as in opset 18, and the channels are not known; export the "
    "model with opset 21": (
        "其權重每群組一值（如 opset 18），而通道數未知；請以 opset 21 匯出模型"
    ),
    "its momentum is none: it averages all batches equally, for which {target} has no setting. "
    "Name the weight of a new batch, as `--momentum 0.1`": (
        "其 momentum 為 none：它平均所有批次，而 {target} 沒有這種設定。"
        "請指定新批次的權重，如 `--momentum 0.1`"
    ),
    "it normalizes the axes {axes}, and a {kind} of {target} the last ones: transpose before and "
    "after it": "它正規化軸 {axes}，而 {target} 的 {kind} 正規化最後的軸：請在其前後轉置",
    "it normalizes the axes {axes}, of more than {most} there are": (
        "它正規化軸 {axes}，超過了至多 {most} 軸"
    ),
    "in {target} its output would be another. {effect}": "在 {target} 中其輸出會不同。{effect}",
    "its running variance averages {one} variances, and the target's {other} ones: to go on "
    "training, tell the elements of a channel in a batch with `--elements`": (
        "其 running 變異數平均 {one} 變異數，而目標平均 {other} 者："
        "若要繼續訓練，請以 `--elements` 說明批次中每通道的元素數"
    ),
    "how many batches it has seen is told nowhere, and {target} counts them: tell it with "
    "`--batches`": "它看過多少批次無處可知，而 {target} 會計數：請以 `--batches` 說明",
    "its running_var is {value:.4g} at index {place}, and has no root; estimate it anew with "
    "`traindx norm recalibrate`": (
        "其 running_var 在索引 {place} 為 {value:.4g}，沒有平方根；"
        "請以 `traindx norm recalibrate` 重新估計"
    ),
    "its {role} is {value} at index {place}, so evaluation has no answer; repair the layer first": (
        "其 {role} 在索引 {place} 為 {value}，因此評估沒有答案；請先修復該層"
    ),
    "its {role} has shape {shape} and its other numbers {other}: it is damaged, or no "
    "normalization": "其 {role} 形狀為 {shape}，其他數值為 {other}：它已損壞，或不是正規化",
    "`{name}` cannot be converted: {why}.": "`{name}` 無法轉換：{why}。",
    "a LayerNorm, GroupNorm or RMSNorm, or none of them: the file does not tell. Name it, as "
    "`--layer 'NAME={example}'`, or leave it behind, with `--leave-out NAME`": (
        "是 LayerNorm、GroupNorm、RMSNorm 或皆非：檔案沒有說明。"
        "請以 `--layer 'NAME={example}'` 指定，或以 `--leave-out NAME` 略過"
    ),
    "it has running statistics, and a {kind} has none": "它有 running 統計量，而 {kind} 沒有",
    "by {by} its output would differ by {difference:.3g}, which is {excess:.3g} times what "
    "rounding allows: it is not given out": (
        "依 {by}，其輸出會相差 {difference:.3g}，為捨入所容許的 {excess:.3g} 倍：不予交出"
    ),
    "its power iteration has not come to rest: Flax takes one more step in evaluation, and the "
    "weight would change by {difference:.3g}. Run it in training mode until it rests": (
        "其冪迭代尚未靜止：Flax 在評估時多走一步，權重會改變 {difference:.3g}。"
        "請在訓練模式執行至其靜止"
    ),
    "spectral normalization of Keras overwrites its kernel and keeps u alone: move the kernel as "
    "it is, without the normalization": (
        "Keras 的譜正規化會覆寫其 kernel 且只保存 u：請照原樣搬移 kernel，不帶正規化"
    ),
    "spectral normalization of Flax keeps u without v: what it divides by cannot be had again. "
    "Divide the kernel by its sigma and move it without the normalization": (
        "Flax 的譜正規化保存 u 而無 v：其除數無法還原。請將 kernel 除以其 sigma，不帶正規化搬移"
    ),
    "it has {n} variables, and its configuration speaks of {wanted}: which they are is not known": (
        "它有 {n} 個變數，而設定說有 {wanted} 個：無從得知各為何物"
    ),
    "it has {n} variables of {full}: whether its scale or its center is missing stands in the "
    "model's configuration; give the `.keras` file": (
        "{full} 個變數中它有 {n} 個：缺 scale 或 center 寫在模型設定中；請給 `.keras` 檔"
    ),
    "a `.keras` file needs the layer that is spectrally normalized; write `.weights.h5` instead": (
        "`.keras` 檔需要被譜正規化的層；請改寫 `.weights.h5`"
    ),
    "`{name}` has no weights, so that a `.keras` file would not know its channels; leave it out, "
    "or write `.weights.h5`": (
        "`{name}` 沒有權重，因此 `.keras` 檔不知道其通道數；請略過它，或改寫 `.weights.h5`"
    ),
    "Keras' RMSNormalization always has a scale; give it one of 1": (
        "Keras 的 RMSNormalization 一律有 scale；請給它值為 1 者"
    ),
    "Batch Renorm keeps statistics of its own (moving_stddev, renorm_mean, renorm_stddev) that no "
    "other framework has; they would be lost": (
        "Batch Renorm 保有自己的統計量（moving_stddev、renorm_mean、renorm_stddev），"
        "其他框架沒有；它們會遺失"
    ),
    "`rms_scaling=True` divides by the standard deviation without subtracting the mean, which no "
    "other framework does; train with RMSNormalization": (
        "`rms_scaling=True` 除以標準差而不減平均，其他框架都不這樣做；請以 RMSNormalization 訓練"
    ),
    "it normalizes {n} axes with a weight of shape {shape}, and nnx has weights of one axis; move "
    "it to linen": "它以形狀 {shape} 的權重正規化 {n} 軸，而 nnx 的權重只有一軸；請搬到 linen",
    "its eps of {eps:g} is 0 in the float32 that ONNX keeps it in; train with a larger one": (
        "其 eps {eps:g} 在 ONNX 保存用的 float32 中為 0；請以較大者訓練"
    ),
    "ONNX gives it a scale for each channel, and how many there are is not known: give it a weight "
    "of ones, and export it anew": (
        "ONNX 給它每通道一個 scale，而通道數未知：請給它全為 1 的權重，並重新匯出"
    ),
    "torch has no {kind}": "torch 沒有 {kind}",
    "Flax has no {kind}": "Flax 沒有 {kind}",
    "nnx has no {kind}": "nnx 沒有 {kind}",
    "Keras has no {kind}": "Keras 沒有 {kind}",
    "ONNX has no {kind}": "ONNX 沒有 {kind}",
    "its numbers are computed within the graph; export the model with constants": (
        "其數值在圖中計算；請以常數匯出模型"
    ),
    "its attributes make no layer ({why})": "其屬性不構成任何層（{why}）",
    # what cannot be done
    "There is no normalization layer to convert among {n} arrays. Of a file that names them "
    "otherwise, tell what they are with `--layer`.": (
        "{n} 個陣列中沒有可轉換的正規化層。若檔案另有命名，請以 `--layer` 說明它們為何。"
    ),
    "Every normalization layer was left out: there is nothing to convert.": (
        "所有正規化層都被略過：沒有可轉換的。"
    ),
    "A file for {framework} ends in one of {suffixes}; got `{file}`.": (
        "{framework} 的檔案以 {suffixes} 之一結尾；得到 `{file}`。"
    ),
    "Two layers would both be called {names}. Give them names of their own with "
    "`--rename OLD=NEW`.": "兩層都會叫做 {names}。請以 `--rename OLD=NEW` 給予各自的名稱。",
    "It cannot be written: {why}.": "無法寫入：{why}。",
    "A framework is one of {known}; got {name}.": "框架為 {known} 之一；得到 {name}。",
    "A layer is named as `PATTERN=PRESET,OPTION=VALUE`, such as `ln*=torch.LayerNorm,eps=1e-6`; "
    "got {text}.": (
        "層以 `PATTERN=PRESET,OPTION=VALUE` 指定，如 `ln*=torch.LayerNorm,eps=1e-6`；得到 {text}。"
    ),
    "A name is changed as `OLD=NEW`, such as `encoder.*.bn=block.*.norm`, with no more `*` in the "
    "new one; got {text}.": (
        "名稱以 `OLD=NEW` 更改，如 `encoder.*.bn=block.*.norm`，"
        "新名稱的 `*` 不得更多；得到 {text}。"
    ),
    # files
    "The file `{file}` needs an ending that tells its format: {known}.": (
        "檔案 `{file}` 須以可辨識格式的副檔名結尾：{known}。"
    ),
    "The names in `{file}` are those of no framework that is known. Say whose they are, with "
    "`--from`.": "`{file}` 中的名稱不屬於任何已知框架。請以 `--from` 說明屬於誰。",
    "Such files are read and written by the package {package}, which is not installed: "
    "`pip install {package}`.": (
        "此類檔案由套件 {package} 讀寫，而它尚未安裝：`pip install {package}`。"
    ),
    "`{name}` is a name that no file can hold. Give the layer another one with "
    "`--rename OLD=NEW`.": (
        "`{name}` 是任何檔案都無法容納的名稱。請以 `--rename OLD=NEW` 給該層另一個名稱。"
    ),
    "the file alone does not tell it again ({why}); proved is what was given to its writer": (
        "單憑該檔案無法再辨認它（{why}）；所證明的是交給寫入者的內容"
    ),
    "the file that was written does not hold it": "寫出的檔案不含它",
    "it is no regular file": "它不是一般檔案",
    "it has {size:,} bytes, where {largest:,} are read at most": (
        "它有 {size:,} 個位元組，而至多讀取 {largest:,} 個"
    ),
    "`{name}` would be in an array of another layer. Give the layer a name of its own with "
    "`--rename OLD=NEW`.": (
        "`{name}` 會位於另一層的陣列之中。請以 `--rename OLD=NEW` 給該層另一個名稱。"
    ),
    "`{name}` is a link to another place": "`{name}` 是指向他處的連結",
    "the numbers of `{name}` are not what it says": "`{name}` 的數值與其所述不符",
    "`{name}` claims {count:,} numbers, where a normalization has {most:,} at most": (
        "`{name}` 聲稱有 {count:,} 個數值，而正規化至多有 {most:,} 個"
    ),
    "`{name}` claims more numbers than are stored": "`{name}` 聲稱的數值多於所儲存者",
    "numbers of type {kind} are not read": "不讀取 {kind} 型別的數值",
    "the numbers of `{name}` are said to be in `{location}`, which is no file in the model's "
    "folder": "據稱 `{name}` 的數值在 `{location}`，而它不是模型資料夾中的檔案",
    "its parts are compressed, which torch never does": "其部分經壓縮，而 torch 從不如此",
    "it holds a Lambda layer with code of its own, which Keras opens only without safe_mode; "
    "nothing of it was run. Save the model's weights alone": (
        "它含有自帶程式碼的 Lambda 層，Keras 只在沒有 safe_mode 時開啟；其中內容均未執行。"
        "請只儲存模型的權重"
    ),
    "it is damaged, or no file of safetensors": "它已損壞，或不是 safetensors 檔",
    "it is damaged, or no file of NumPy's arrays": "它已損壞，或不是 NumPy 的陣列檔",
    "it is damaged, or no tree of Flax": "它已損壞，或不是 Flax 的樹",
    "it is damaged, or no model of ONNX": "它已損壞，或不是 ONNX 的模型",
    "it is damaged, or no model of Keras": "它已損壞，或不是 Keras 的模型",
    "it is damaged, or no weights of Keras": "它已損壞，或不是 Keras 的權重",
}
