"""`traindx norm conformance`: what is asked, what differs, and how it is shown."""

MESSAGES: dict[str, str] = {
    # asking
    "Not installed: {names}.": "未安裝：{names}。",
    "`{place}` has no function `{name}`. Name one that makes a layer: a `torch.nn.Module`, or a "
    "function of a NumPy array.": (
        "`{place}` 沒有函數 `{name}`。請指定會製作層的函數：`torch.nn.Module`，"
        "或以 NumPy 陣列為輸入的函數。"
    ),
    "`{place}` cannot be imported: {error}.": "無法匯入 `{place}`：{error}。",
    "Conformance knows the families {known}; got `{norm}`.": (
        "conformance 認得的類別為 {known}；得到 `{norm}`。"
    ),
    "no `{module}`: {install}": "沒有 `{module}`：{install}",
    "A target is one of {known}, `all`, or `package:factory`; got `{name}`.": (
        "目標為 {known}、`all` 或 `package:factory` 之一；得到 `{name}`。"
    ),
    "This is no conformance document of schema {schema}.": (
        "這不是 schema {schema} 的 conformance 文件。"
    ),
    "`{name}` has given no answer within {seconds:.0f} s. Let it return for an input of a few "
    "hundred numbers.": "`{name}` 在 {seconds:.0f} 秒內沒有回答。請讓它對數百個數的輸入能夠返回。",
    "`{name}` needs {arguments}. A factory is called without arguments, or with the number of "
    "channels.": "`{name}` 需要 {arguments}。呼叫 factory 時不帶引數，或只帶通道數。",
    "`traindx norm conformance` needs a target: `traindx norm conformance torch`, `traindx norm "
    "conformance package:factory`.": (
        "`traindx norm conformance` 需要目標：`traindx norm conformance torch`、"
        "`traindx norm conformance package:factory`。"
    ),
    "`--norm` says what `package:factory` should be; name one.": (
        "`--norm` 說明 `package:factory` 應是什麼；請指定一個。"
    ),
    # conventions
    "writes into its input": "寫入了自己的輸入",
    "answers the same question otherwise the second time": "對同一個問題，第二次的回答不同",
    "differs, and no specification that was tried explains it": (
        "有差異，而嘗試過的規格都無法解釋"
    ),
    "running statistics are not kept, or cannot be seen": "沒有保存 running 統計量，或無法看到",
    "a weight and a bias by default": "預設有 weight 和 bias",
    "a weight and no bias by default": "預設有 weight，沒有 bias",
    "no weight and no bias by default": "預設沒有 weight，也沒有 bias",
    "a bias and no weight by default": "預設有 bias，沒有 weight",
    "{n} groups by default": "預設 {n} 組",
    "no counter of batches": "沒有批次計數器",
    "eps is {found}, and not {expected}": "eps 為 {found}，而非 {expected}",
    "eps stands {found}, not {expected}": "eps 的位置為 {found}，而非 {expected}",
    "no eps": "沒有 eps",
    "the new value weighs {found}, not {expected}": "新值的權重為 {found}，而非 {expected}",
    "momentum is the weight of the old value, not of the new": (
        "momentum 是舊值的權重，而非新值的"
    ),
    "running variance {found}, not {expected}": "running 變異數為 {found}，而非 {expected}",
    "running statistics do not move": "running 統計量不更新",
    "divides by the {found} variance, not the {expected}": (
        "除以 {found} 變異數，而非 {expected} 的"
    ),
    "channels on axis {found}, not {expected}": "通道在軸 {found}，而非 {expected}",
    "axis {found} instead of {expected}": "軸為 {found}，而非 {expected}",
    "statistics over axes {found}, not {expected}": "統計沿軸 {found}，而非 {expected}",
    "groups are {found}, and not {expected}": "群組為 {found}，而非 {expected}",
    "weight and bias per group, not per channel": "weight 和 bias 每組一個，而非每通道一個",
    "the mean is not subtracted": "沒有減去平均值",
    "the mean is not subtracted, and the root mean square divides": (
        "沒有減去平均值，並除以均方根"
    ),
    "divides by the standard deviation, not the root mean square": "除以標準差，而非均方根",
    "the mean is subtracted": "減去了平均值",
    "multiplies by 1 + weight": "乘以 1 + weight",
    "multiplies by the weight alone": "只乘以 weight",
    "evaluation uses the batch's statistics": "評估時使用批次的統計量",
    "evaluation moves the running statistics by the batch, and then uses them": (
        "評估時先以批次更新 running 統計量，再使用它們"
    ),
    "the window holds {found} before and {after} after, not {expected} and {rest}": (
        "視窗包含前 {found} 個、後 {after} 個，而非 {expected} 個和 {rest} 個"
    ),
    "alpha is {found}, and not {expected}": "alpha 為 {found}，而非 {expected}",
    "alpha is not divided by the size": "alpha 沒有除以大小",
    "beta is {found}, and not {expected}": "beta 為 {found}，而非 {expected}",
    "k is {found}, and not {expected}": "k 為 {found}，而非 {expected}",
    "only as many channels are divided as there are samples: it loops over them": (
        "只有與樣本數一樣多的通道被除：它對樣本做迴圈"
    ),
    "refuses windows of even size: {error}": "拒絕偶數大小的視窗：{error}",
    # faults
    "the layer raises {error}": "拋出 {error}",
    "wrong at a large mean, and nothing that was tried explains it": (
        "平均值大時出錯，而嘗試過的都無法解釋"
    ),
    "one-pass variance, E[x^2] - E[x]^2, and 0 where that is negative": (
        "單趟變異數 E[x^2] - E[x]^2，為負時取 0"
    ),
    "one-pass variance, E[x^2] - E[x]^2, and NaN where that is negative": (
        "單趟變異數 E[x^2] - E[x]^2，為負時得 NaN"
    ),
    "the gradient of a {fault}": "梯度來自{fault}",
    "running variance of a {fault}": "running 變異數來自{fault}",
    "the running variance becomes negative, {least}": "running 變異數變成負值 {least}",
    "the gradient takes mean and variance for constants": "梯度把平均值和變異數當成常數",
    "the gradient leaves out the part through the mean": "梯度缺少經過平均值的部分",
    "the gradient leaves out the part through the variance": "梯度缺少經過變異數的部分",
    "the window's sum slides: squares are added and subtracted, and cancel": (
        "視窗的和以滑動計算：平方加上再減去，因而相消"
    ),
    # types
    "computes {given} in {found}": "以 {found} 計算 {given}",
    "computes float64 in float32": "以 float32 計算 float64",
    "keeps eps and other options in float32, for float64 input too": (
        "eps 等選項以 float32 保存，輸入為 float64 時亦然"
    ),
    "running statistics stay in float32 for {dtype} input": (
        "輸入為 {dtype} 時，running 統計量仍為 float32"
    ),
    "the layer takes no {dtype}: {error}": "不支援 {dtype}：{error}",
    "{given} input gives {got} output": "{given} 輸入得到 {got} 輸出",
    "sums in the input's type, {dtype}": "以輸入的型別 {dtype} 求和",
    "{aspect} in {dtype} is off by {times} of what its last rounding allows": (
        "{dtype} 的 {aspect} 誤差為最後捨入所容許的 {times}"
    ),
    "squares overflow float32 from {size} on: the output is {got}": (
        "從 {size} 起平方超出 float32：輸出為 {got}"
    ),
    "{aspect} is {got} for numbers of {size}, whose squares {dtype} does not hold": (
        "數值為 {size} 時 {aspect} 為 {got}，其平方超出 {dtype}"
    ),
    "squares of the smallest numbers are 0, and nothing else divides": (
        "最小的數平方為 0，而除數中沒有別的"
    ),
    "subnormal numbers count as 0": "次正規數視為 0",
    "subnormal input gives {got} where {right} is right": ("次正規輸入得到 {got}，正確為 {right}"),
    # edges
    "raises": "拋出錯誤",
    "the output is the bias": "輸出為 bias",
    "the output is the input": "輸出為輸入",
    "a single element gives {got}": "單一元素得到 {got}",
    "a single element: {found}, not {expected}": "單一元素：{found}，而非{expected}",
    "a single element makes the running variance NaN": "單一元素使 running 變異數成為 NaN",
    "an empty batch raises {error}": "空批次拋出 {error}",
    "an empty batch makes running statistics NaN": "空批次使 running 統計量成為 NaN",
    "an empty batch moves running statistics to {mean} and {var}": (
        "空批次使 running 統計量成為 {mean} 和 {var}"
    ),
    "an empty batch is counted": "空批次也計數",
    "a mask with {n} channels raises {error}": "{n} 個通道時使用遮罩拋出 {error}",
    "masked elements are not left out as they should be": "被遮罩的元素沒有如應有的被略過",
    "with all masked, running mean and variance go from 0 and 1 to {mean} and {var}": (
        "全部遮罩時，running 平均值和變異數由 0 和 1 變為 {mean} 和 {var}"
    ),
    "a constant input gives {got}": "常數輸入得到 {got}",
    "a constant input gives {got}, not 0": "常數輸入得到 {got}，而非 0",
    "a constant input does not give 0: the rounding of the mean is divided by the root of eps": (
        "常數輸入不得 0：平均值的捨入誤差除以 eps 的根"
    ),
    "raises on {memory} input: {error}": "{memory} 輸入拋出 {error}",
    "{memory} input gives something else": "{memory} 輸入得到不同的結果",
    "{value} in one element reaches others that share no statistic with it": (
        "一個元素中的 {value} 影響到不共用統計量的元素"
    ),
    "{value} in one element leaves the output finite": "一個元素中的 {value} 之後輸出仍為有限",
    "{value} in one element makes running statistics {got} for good": (
        "一個元素中的 {value} 使 running 統計量永遠成為 {got}"
    ),
    # the report
    "{name} ({version}): {errors}, {warnings}, {notes}": (
        "{name}（{version}）：{errors}、{warnings}、{notes}"
    ),
    "{n} note": "{n} 則註記",
    "{n} notes": "{n} 則註記",
    "{part}, {verdict}; smallest input of shape {shape}; in {questions}": (
        "{part}，{verdict}；最小輸入的形狀為 {shape}；見於 {questions}"
    ),
    "{n} question": "{n} 個問題",
    "{n} questions": "{n} 個問題",
    "{layer}: {text}": "{layer}：{text}",
    "{layer}: {counts}; worst {verdict}": "{layer}：{counts}；最差為 {verdict}",
    "{n} {verdict}": "{n} {verdict}",
    "{layer}, {what}: {reason}": "{layer}，{what}：{reason}",
    "{name}: {reason}": "{name}：{reason}",
    "not installed": "未安裝",
    "E errors, W warnings, N notes; - has no such layer": (
        "E 錯誤，W 警告，N 註記；- 表示沒有這種層"
    ),
    "conventions and limits": "慣例與限制",
    "compared": "比較結果",
    "not asked": "未詢問",
    "got": "得到",
    "expected": "應為",
    "Normalization layers: how they differ": "正規化層：差異何在",
    "a program that shows both": "顯示兩者的程式",
}
