"""What the exact normalization core refuses, and why."""

MESSAGES: dict[str, str] = {
    "the input": "輸入",
    "the mean": "平均值",
    "the sum of squares": "平方和",
    "the mask": "遮罩",
    "the weight": "權重",
    "a shard": "分片",
    "the numbers are complex": "這些數是複數",
    "{n} groups": "{n} 個群組",
    "groups of {n}": "每組 {n} 個",
    "unknown {names}": "未知的 {names}",
    "no {names}": "沒有 {names}",
    "`{name}` needs one value a group for {parts} groups; got shape {given}. Pass {parts} "
    "values.": ("`{name}` 須為 {parts} 個群組各給一個值；得到形狀 {given}。請給 {parts} 個值。"),
    "{kind} has no {name}; got one. Leave it out.": "{kind} 沒有 {name}，卻給了一個。請省略它。",
    "{kind} has no weight and bias; got some. Leave them out.": (
        "{kind} 沒有 weight 和 bias，卻給了。請省略它們。"
    ),
    "Normalization needs an array of real numbers for {name}; got what NumPy cannot read as one "
    "({why}). Pass numbers in rows of equal length.": (
        "正規化的{name}須為實數陣列；得到 NumPy 無法讀成陣列的東西（{why}）。請給等長的各列數字。"
    ),
    "Normalization needs finite numbers for {name}; got {value} at index {place}. One such element "
    "spoils its whole statistic: find where it comes from, or remove it.": (
        "正規化的{name}須為有限數；在索引 {place} 得到 {value}。"
        "一個這樣的元素就會毀掉整個統計量：請找出來源，或將它移除。"
    ),
    "`{name}` needs shape {wanted} for an input of shape {shape}; got {given}. Pass one value for "
    "each index of axes {axes}.": (
        "輸入形狀為 {shape} 時，`{name}` 須為形狀 {wanted}；得到 {given}。"
        "請為軸 {axes} 的每個索引給一個值。"
    ),
    "Groups need either a `count` or a `size`, and not 0; got count={count}, size={size}. Give one "
    "of them.": (
        "群組須指定 `count` 或 `size` 其中之一，且不為 0；"
        "得到 count={count}、size={size}。請指定其中一個。"
    ),
    "Groups need an axis that divides into them; got {extent} elements on axis {axis} and {parts}. "
    "Choose a divisor of {extent}.": (
        "群組須能整除所在的軸；軸 {axis} 有 {extent} 個元素，卻要 {parts}。請選 {extent} 的因數。"
    ),
    "`momentum` is the weight of the new value, from 0 to 1; got {momentum}. If your framework "
    "gives the old value's weight, pass 1 minus it.": (
        "`momentum` 是新值的權重，介於 0 到 1；得到 {momentum}。"
        "如果你的框架給的是舊值的權重，請傳入 1 減去它。"
    ),
    "{kind} needs a positive, finite `eps`; got {eps}. Use 1e-5.": (
        "{kind} 需要正的有限 `eps`；得到 {eps}。請用 1e-5。"
    ),
    "{kind} has no eps here; got {eps}. Pass 0, or name its placement.": (
        "這裡的 {kind} 沒有 eps；得到 {eps}。請傳入 0，或指定它的位置。"
    ),
    "An axis must exist in the input; got axis {axis} for an input of {ndim} axes. Name an axis "
    "from {first} to {last}, or give the input that axis.": (
        "軸必須存在於輸入中；輸入有 {ndim} 個軸，得到軸 {axis}。"
        "請指定 {first} 到 {last} 的軸，或讓輸入有這個軸。"
    ),
    "{kind} needs at least one element; got an input of shape {shape}. Skip empty batches.": (
        "{kind} 至少需要一個元素；得到形狀為 {shape} 的輸入。請略過空批次。"
    ),
    "{kind} takes no mask; got one. Leave it out, or use a layer whose preset has a `mask`.": (
        "{kind} 不接受遮罩，卻給了一個。請省略它，或改用預設中有 `mask` 的層。"
    ),
    "{kind} needs an unmasked element in every set; got a set that is masked altogether. Skip such "
    "batches.": ("{kind} 的每個集合都須有未遮住的元素；有一個集合全被遮住。請略過這樣的批次。"),
    "An {estimator} variance needs at least {least} elements; got {count}. Use a larger batch.": (
        "{estimator} 變異數至少需要 {least} 個元素；得到 {count} 個。請用更大的批次。"
    ),
    "Running statistics need a layer that keeps them; got {kind}, which does not. Call `forward`, "
    "which is the same in training and evaluation.": (
        "running 統計量需要會保存它的層；{kind} 不會。請呼叫 `forward`，它在訓練和評估時相同。"
    ),
    "`running_var` must not be negative; got {value}. Reset the running statistics and estimate "
    "them again.": "`running_var` 不可為負；得到 {value}。請重設 running 統計量並重新估計。",
    "{kind} needs its running statistics in training too; got none. Pass `running`, or "
    "`fresh(spec, x.shape)` before the first batch.": (
        "{kind} 在訓練時也需要 running 統計量，卻沒有給。"
        "請傳入 `running`；第一個批次之前則傳入 `fresh(spec, x.shape)`。"
    ),
    "{kind} needs more than one element for each statistic in training; got 1 in an input of shape "
    "{shape}. Use a larger batch, or LayerNorm or GroupNorm.": (
        "{kind} 在訓練時，每個統計量須有一個以上的元素；形狀為 {shape} 的輸入只有 1 個。"
        "請用更大的批次，或改用 LayerNorm 或 GroupNorm。"
    ),
    "{kind} with eps={eps} needs a spread that keeps its divisor above 0; got {value} for a set of "
    "elements. Use a positive eps.": (
        "eps={eps} 的 {kind} 須有讓除數大於 0 的散布；有一組元素為 {value}。請用正的 eps。"
    ),
    "{kind} in evaluation needs its running statistics; got none. Pass `running`.": (
        "{kind} 在評估時需要 running 統計量，卻沒有給。請傳入 `running`。"
    ),
    "{kind} needs its power vectors; got {given}. Pass PowerVectors(u, v).": (
        "{kind} 需要冪迭代向量；得到 {given}。請傳入 PowerVectors(u, v)。"
    ),
    "{kind} needs a weight with a singular value above 0; got u.Wv = {value}. Initialize the "
    "weight, or its u and v, with numbers that are not 0.": (
        "{kind} 的權重須有大於 0 的奇異值；得到 u.Wv = {value}。"
        "請以非零的數初始化權重，或它的 u 和 v。"
    ),
    "Power vectors need a layer that iterates them; got {kind}. Use a SpectralNorm preset.": (
        "冪迭代向量需要會迭代它的層；得到 {kind}。請用 SpectralNorm 的預設。"
    ),
    "`u` and `v` need one value a row and a column of a matrix of shape {shape}; got {rows} and "
    "{columns}. Check the axis of rows.": (
        "對形狀 {shape} 的矩陣，`u` 和 `v` 須為每列、每行各給一個值；"
        "得到 {rows} 個和 {columns} 個。請檢查列所在的軸。"
    ),
    "Shards need a layer whose statistics span the whole batch, and at least one shard; got {kind} "
    "and {count}. Use a BatchNorm preset.": (
        "分片需要統計量橫跨整個批次的層，且至少一個分片；得到 {kind} 和 {count} 個。"
        "請用 BatchNorm 的預設。"
    ),
    "Shards need the same number of channels; got the shapes {shapes}. Shard the batch axis.": (
        "各分片的通道數須相同；得到形狀 {shapes}。請沿批次軸分片。"
    ),
    "A preset needs a known name; got {name!r}. Near it: {names}.": (
        "預設須為已知的名稱；得到 {name!r}。相近的有：{names}。"
    ),
    "{name} takes the options {options}; got {said}. Name those, or change the spec with "
    "dataclasses.replace.": (
        "{name} 接受的選項為 {options}；得到的是：{said}。"
        "請用這些選項，或以 dataclasses.replace 修改規格。"
    ),
    "{kind} is not emulated: its u and v are state. Use `evaluate` of the reference.": (
        "{kind} 不提供模擬：它的 u 和 v 是狀態。請用參考實作的 `evaluate`。"
    ),
    "A square root needs a value of at least 0; got {value}. Check the variance it is taken of.": (
        "平方根的對象須至少為 0；得到 {value}。請檢查被開方的變異數。"
    ),
    "A mean needs at least one value; got none. Skip empty batches.": (
        "平均值至少需要一個值，卻一個也沒有。請略過空批次。"
    ),
    "An unbiased variance needs at least two values; got one. Use a larger batch.": (
        "不偏變異數至少需要兩個值；只得到一個。請用更大的批次。"
    ),
    "A specification is known for torch's normalization layers; got {given}. Name a preset "
    "instead.": ("已知規格的是 torch 的正規化層；得到 {given}。請改為指定預設的名稱。"),
}
