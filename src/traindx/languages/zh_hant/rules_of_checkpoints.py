"""E013, E014, E018, E019, and what E006 says of states: what evaluation and models are given."""

MESSAGES: dict[str, str] = {
    # E006 copy-differs
    "what was loaded into {model} after {step:.0f} steps, {given:.0f} tensors, are its own of that "
    "moment, so that loading has changed nothing": (
        "在 {step:.0f} 步之後載入 {model} 的 {given:.0f} 個張量就是它當時自己的張量，"
        "所以載入什麼也沒有改變"
    ),
    "`state_dict()` returns the living tensors, which every later step has changed.": (
        "`state_dict()` 傳回的是活的張量，其後每一步都改變了它們。"
    ),
    "best = copy.deepcopy({model}.state_dict())": "best = copy.deepcopy({model}.state_dict())",
    "{copy}, whose weights differ from those of {model}, is evaluated with running statistics that "
    "leave what its layers are given {gap:.2f} standard deviations from normal (threshold "
    "{threshold:g}), first at `{norm}`": (
        "{copy} 的權重與 {model} 的不同，評估時它的 running 統計量使各層所得的輸入偏離標準分布 "
        "{gap:.2f} 個標準差（門檻 {threshold:g}），最先是 `{norm}`"
    ),
    # E013 evaluation-input-shift
    "In evaluation a model is given inputs in another scale than those it was trained on.": (
        "評估時給模型的輸入，尺度與訓練時的不同。"
    ),
    "no evaluation on inputs of the shape of training was seen": (
        "沒有看到輸入形狀與訓練時相同的評估"
    ),
    "in evaluation {model} is given inputs of {ratio:.3g} times the deviation of those in "
    "training, at all {features:.0f} features alike, and means {shift:.2g} deviations away "
    "(correlation of the means {correlation:.3f})": (
        "評估時給 {model} 的輸入，標準差是訓練時的 {ratio:.3g} 倍，全部 {features:.0f} 個特徵皆然，"
        "平均則相差 {shift:.2g} 個標準差（兩者平均的相關係數為 {correlation:.3f}）"
    ),
    "They are the same features, scaled otherwise.": "它們是同樣的特徵，只是尺度不同。",
    "in evaluation {model} is given inputs of {ratio:.3g} times the deviation of those in training "
    "(the median of {features:.0f} features, {far:.0%} of them beyond a factor of 2); {ours:.0%} "
    "of the features are of mean 0 and deviation 1 in training, and {theirs:.0%} in evaluation": (
        "評估時給 {model} 的輸入，標準差是訓練時的 {ratio:.3g} 倍（{features:.0f} 個特徵的中位數，"
        "其中 {far:.0%} 相差超過 2 倍）；平均為 0 且標準差為 1 的特徵，訓練時占 {ours:.0%}，"
        "評估時占 {theirs:.0%}"
    ),
    "Inputs are standardized in training, and not in evaluation.": (
        "輸入在訓練時經過標準化，評估時卻沒有。"
    ),
    "Inputs are standardized in evaluation, and not in training.": (
        "輸入在評估時經過標準化，訓練時卻沒有。"
    ),
    "A feature is in other units in evaluation than in training.": (
        "同一特徵在評估時與訓練時的單位不同。"
    ),
    "x = (x - train_mean) / train_std  # the same lines, with the training set's numbers, in "
    "training and in evaluation": (
        "x = (x - train_mean) / train_std  # 訓練與評估用同樣的程式，並用訓練集的數值"
    ),
    "noise, masks and other data, which change no scale": ("雜訊、遮罩與其他資料，它們不改變尺度"),
    # E014 weights-not-loaded
    "A checkpoint is loaded into a model, and most or all of it is passed over.": (
        "檢查點載入模型時，大部分或全部內容都被略過。"
    ),
    "nothing was loaded into a model": "沒有載入任何東西到模型",
    "what was loaded into {place} is empty: its {total:.0f} parameters are as they were": (
        "載入 {place} 的東西是空的：它的 {total:.0f} 個參數仍是原樣"
    ),
    "of {given:.0f} tensors loaded into {place}, {used:.0f} were used: the checkpoint has "
    "{theirs}, the model {own}": (
        "載入 {place} 的 {given:.0f} 個張量中用上了 {used:.0f} 個：檢查點有 {theirs}，模型有 {own}"
    ),
    "all {given:.0f} tensors loaded into {place} are its own, so that nothing has changed": (
        "載入 {place} 的全部 {given:.0f} 個張量都是它自己的，所以什麼也沒有改變"
    ),
    "`state_dict()` returns the living tensors. What was to replace some of them was not there.": (
        "`state_dict()` 傳回的是活的張量；原本要取代其中一些的東西並不存在。"
    ),
    "of {given:.0f} tensors loaded into {place}, {used:.0f} were used, and of its {total:.0f} "
    "parameters {loaded:.0f} were loaded (both under {share:.0%})": (
        "載入 {place} 的 {given:.0f} 個張量中用上了 {used:.0f} 個，"
        "它的 {total:.0f} 個參數中載入了 {loaded:.0f} 個（兩者都不到 {share:.0%}）"
    ),
    "The checkpoint is of another model, or its names are.": (
        "這個檢查點屬於另一個模型，或者名稱是另一個模型的。"
    ),
    "No name in it is a name of the model's, and `strict=False` passes over that.": (
        "其中沒有一個名稱是模型的名稱，而 `strict=False` 對此略過不提。"
    ),
    "Its names lack the `{prefix}` that the model's begin with; with it {fits:.0f} more fit.": (
        "它的名稱缺少模型名稱開頭的 `{prefix}`；加上後會再符合 {fits:.0f} 個。"
    ),
    "Its names begin with `{prefix}`; without it {fits:.0f} more fit.": (
        "它的名稱以 `{prefix}` 開頭；去掉後會再符合 {fits:.0f} 個。"
    ),
    "Its names differ by `{name}`; but for that {fits:.0f} more fit.": (
        "它的名稱差在 `{name}`；若不是這樣，會再符合 {fits:.0f} 個。"
    ),
    "{model}.load_state_dict({{'{prefix}' + name: value for name, value in state.items()}})": (
        "{model}.load_state_dict({{'{prefix}' + name: value for name, value in state.items()}})"
    ),
    "{model}.load_state_dict({{name.removeprefix('{prefix}'): value for name, value in "
    "state.items()}})": (
        "{model}.load_state_dict({{name.removeprefix('{prefix}'): value for name, value in "
        "state.items()}})"
    ),
    "print({model}.load_state_dict(state, strict=False))  # what is missing, and what is passed "
    "over": "print({model}.load_state_dict(state, strict=False))  # 缺少什麼、略過了什麼",
    "a later load into the same module": "之後再次載入同一模組",
    # E018 dropout-mask-kept
    "A dropout drops the same units in every sample at every step, and none of them in "
    "evaluation.": "某個 dropout 在每一步、每個樣本都丟掉同樣的單元，評估時卻一個也不丟。",
    "`{place}` ({kind}) sets the same {dropped:.0%} of its units to 0 in training, in every sample "
    "and whatever the random numbers, and none of them in evaluation": (
        "`{place}`（{kind}）在訓練時把同樣的 {dropped:.0%} 單元設為 0，每個樣本皆然，"
        "與隨機數無關，評估時卻一個也不設為 0"
    ),
    "Its mask is made once and kept.": "它的遮罩只產生一次便沿用下去。",
    "F.dropout(x, p, training=self.training)  # draws a mask in every call": (
        "F.dropout(x, p, training=self.training)  # 每次呼叫都重新抽取遮罩"
    ),
    "masks that are drawn, which are at their mean": "抽取而得的遮罩，它們已取其平均",
    # E019 foreign-layout
    "Weights that were brought from elsewhere lie in the order of another framework.": (
        "從別處帶來的權重，仍是另一個框架的排列順序。"
    ),
    "its square matrices transposed": "把它的方陣轉置",
    "the gates of its recurrent layers read as {order}": ("把它的循環層的閘依 {order} 的順序讀取"),
    "before training the loss of {model} is {before:.2f} of that of a guess, and with {what} "
    "{loss:.2g} (threshold {threshold:g}), first `{place}`": (
        "訓練之前，{model} 的損失是猜測者的 {before:.2f} 倍；若{what}，則是 {loss:.2g} 倍"
        "（門檻 {threshold:g}），最先是 `{place}`"
    ),
    "The weights were brought here as another framework keeps them.": (
        "權重是照另一個框架的存法帶來的。"
    ),
    "layer.weight.copy_(torch.from_numpy(w.T))  # (outputs, inputs)": (
        "layer.weight.copy_(torch.from_numpy(w.T))  # （輸出, 輸入）"
    ),
    "blocks = dict(zip('{order}', w.chunk({n})))  # and of each bias\n"
    "w = torch.cat([blocks[gate] for gate in '{own}'])": (
        "blocks = dict(zip('{order}', w.chunk({n})))  # 每個偏置也一樣\n"
        "w = torch.cat([blocks[gate] for gate in '{own}'])"
    ),
    "new weights, which fit a batch in no order": "新的權重，它們以任何順序都不符合批次",
    "the batch has fewer than {n} samples": "批次不到 {n} 個樣本",
    "no weights could be read in another order": "沒有可以用別的順序讀取的權重",
    "the model fits its batch as it is": "模型照現狀就符合它的批次",
    "Before training: the data loss over that of the best guess that does not look at the input, "
    "with weights read in the other order that fits best; of a model that does not fit as it is.": (
        "訓練之前：資料損失除以不看輸入的最佳猜測的損失，權重以最符合的另一種順序讀取；"
        "只針對照現狀不符合的模型。"
    ),
}
